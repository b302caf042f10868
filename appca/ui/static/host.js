/** The canvas in a Streamlit page: reruns update the picture, and selections are sent back. */

import { mount } from '../../canvas/js/mount.js';
import { buildControls } from '../../canvas/js/parts/bar.js';
import { element, mapped, ofBase64, toBase64 } from '../../canvas/js/parts/dom.js';
import { isDark } from '../../canvas/js/theme.js';

/**   @typedef {{key: string}} Holder  */

/** Return a scene whose parts are fetched when first needed; fetch the components' pictures and the named buffers now, in parallel with the header. @param {Address} scene @param {Holder} holder @param {string[]} names @returns {Promise<Input>} */
async function inputOf(scene, holder, names) {
  const get = (/** @type {string} */ name) => fetched(`${scene.at}${name}`, holder);
  const buffer = async (/** @type {string[]} */ shards) => {
    const parts = await Promise.all(shards.map(async (shard) => (await get(shard)).arrayBuffer()));
    return parts.length > 1 ? new Blob(parts).arrayBuffer() : parts[0];
  };
  const picture = async (/** @type {string} */ name) => (await get(name)).blob();
  /** @template T @param {boolean} now @param {() => Promise<T>} ask */
  const once = (now, ask) => {
    let answer = now ? ask() : null;
    answer?.catch(() => {}); // the caller that takes the answer handles the error
    return () => {
      const taken = answer ?? ask();
      answer = null;
      return taken;
    };
  };
  const { components: file, sheets } = scene;
  const header = get(scene.meta); // first, because a browser fetches only six files at a time
  const buffers = mapped(scene.buffers, (shards, name) =>
    once(names.includes(name), () => buffer(shards)),
  );
  const components = file ? once(true, () => picture(file)) : undefined;
  const meta = await (await header).json();
  return { meta, buffers, sheets: { tile: (number) => picture(sheets[number]), components } };
}

/** The server does not have the content, or denies it to this session. */
class Gone extends Error {}

/** @param {string} address @param {Holder} holder @param {RequestInit} [how] */
async function fetched(address, holder, how = {}) {
  const answer = await fetch(address, { ...how, headers: { 'X-Appca-Key': holder.key } });
  if (!answer.ok) throw new Gone(String(answer.status));
  return answer;
}

/** Ask the server about rows. @param {Host} host @param {'texts' | 'scores'} what @param {number[]} rows */
const asked = (host, what, rows) =>
  fetched(`${host.address?.at}${host.address?.questions}/${what}`, host, {
    method: 'POST',
    body: new Uint32Array(rows),
  });

/** Return the hover card's lines for rows whose texts the scene does not have. @param {Host} host @param {number[]} rows */
async function describe(host, rows) {
  const { ids, lines } = await (await asked(host, 'texts', rows)).json();
  return rows.map((_, i) => [
    ids[i],
    ...lines.map((/** @type {any} */ { title, values }) => `${title}: ${values[i]}`),
  ]);
}

/** @typedef {{at: string, key: string, meta: string, buffers: Record<string, string[]>, sheets: string[], components: string | null, questions: string}} Address */
/** @typedef {{scene: Address, options: Options, height: string | null, selected: string | null, seen: [string, number] | null, holds: boolean}} Message `holds`: whether a click focuses a row */
/** @typedef {{parent: HTMLElement, send: Function, next: Message | null, busy: boolean, gone: boolean, flat: boolean, lost: number, handle: Handle | null, key: string, address: Address | null, last: Message | null, shown: string, taken?: string | null, layouts?: string, told: Options | null, stamp: {mount: string, number: number}, acts: number}} Host */

/** Return the element that contains the canvas. @param {Host} host */
const boxOf = ({ parent }) =>
  /** @type {HTMLElement} */ (parent.querySelector('.appca-canvas-box') ?? parent);

/** @type {WeakMap<Element, Host>} */ const hosts = new WeakMap();
const MOST_LOST = 3; // maximum number of consecutive requests for a scene that the server no longer has

const BUSY = '[data-test-script-state]:not([data-test-script-state="notRunning"])';

/** The bar of the page. @typedef {{parent: Element, send: Function, told: Controls, mount: string, controls: ReturnType<typeof buildControls>}} Bar */
/** @type {Bar | undefined} */ let bar;

/** @param {BarCall} call */
function showBar({ data: { controls: told, seen }, parentElement: parent, setStateValue: send }) {
  const mount = newMount();
  let number = 0;
  if (bar?.parent !== parent) {
    const tell = (/** @type {string} */ kind, /** @type {any} */ value) => {
      number += 1;
      bar?.send(kind, { mount, number, ...(kind === 'size' ? value : { name: value }) });
      return number;
    };
    const controls = buildControls(tell, () => document.querySelector(BUSY) !== null);
    bar = { parent, send, told, mount, controls };
    parent.append(controls.box);
  }
  const now = Object.assign(bar, { send, told });
  const ours = seen.filter(([of]) => of === now.mount).map(([, number]) => number);
  now.controls.show(told, Math.max(0, ...ours));
  return () => {
    now.controls.box.remove();
    if (bar === now) bar = undefined;
  };
}

/** @typedef {{data: {controls: Controls, seen: [string, number][]}, parentElement: HTMLElement, setStateValue: Function}} BarCall */
/** @typedef {{data: Message, parentElement: HTMLElement, setStateValue: Function}} Call */

/** Called by Streamlit at every rerun and theme change. @param {Call | BarCall} call */
export default function show(call) {
  if ('controls' in call.data) return showBar(/** @type {BarCall} */ (call));
  const { data, parentElement, setStateValue } = /** @type {Call} */ (call);
  const host = hosts.get(parentElement) ?? begun(parentElement);
  host.send = setStateValue;
  host.next = host.last = data;
  boxOf(host).style.height = data.height ?? '';
  if (!host.busy) catchUp(host);
  return () => {
    host.gone = true;
    host.handle?.destroy();
    hosts.delete(parentElement);
  };
}

const newMount = () => crypto.getRandomValues(new Uint32Array(2)).join('-');

/** @param {HTMLElement} parent @returns {Host} */
function begun(parent) {
  const stamp = { mount: newMount(), number: 0 };
  const none = { next: null, handle: null, address: null, last: null, told: null };
  const counts = { busy: false, gone: false, flat: false, lost: 0, acts: 0, key: '', shown: '' };
  const host = { parent, send: () => {}, stamp, ...none, ...counts };
  hosts.set(parent, host);
  return host;
}

/** Update the picture to the last message, one message at a time. @param {Host} host */
async function catchUp(host) {
  host.busy = true;
  try {
    while (host.next && !host.gone && !host.flat) {
      const data = host.next;
      host.next = null;
      await follow(host, data);
      host.lost = 0;
    }
  } catch (error) {
    if (!(error instanceof Gone)) {
      const said = error instanceof Error ? error.message : String(error); // for example, WebGL 2 is missing
      boxOf(host).replaceChildren(element('p', '', { style: 'padding: 8px 24px' }, said));
      boxOf(host).classList.remove('appca-blank', 'appca-explorer');
      host.flat = !host.handle; // the page then draws the panels without WebGL
      if (host.flat) host.send('flat', host.stamp.mount);
      throw error;
    }
    host.lost += 1; // a rerun publishes the scene again
    if (host.lost <= MOST_LOST)
      host.send('lost', `${host.stamp.mount} ${host.lost} ${error.message}`);
  } finally {
    host.busy = false;
  }
}

/** Return the buffers of another scene that the visible views need. @param {Host} host */
const needed = ({ handle }) => [
  'components',
  'scores',
  'doubt',
  'outside',
  `codes.${handle?.stage.colouringName}`,
  ...(handle?.stage.views.flatMap(({ layout, map }) =>
    [layout, map ?? layout].flatMap(({ name }) => [`order.${name}`, `map.${name}`]),
  ) ?? []),
];

/** @param {Host} host @param {Message} data */
async function follow(host, data) {
  const { scene } = data;
  const unsaid = { panels: undefined, compact: undefined, came: undefined };
  const theme = /** @type {'light' | 'dark'} */ (isDark(host.parent) ? 'dark' : 'light');
  const told = { ...unsaid, ...data.options, theme };
  const options = { ...told };
  for (const name of /** @type {const} */ (['colouring', 'beside']))
    if (host.handle && told[name] === host.told?.[name]) delete options[name]; // the user may have chosen another value since
  host.layouts = [told.layout, told.beside].filter(Boolean).join('+');
  Object.assign(host, { key: scene.key, address: scene });
  if (host.handle && host.shown === scene.meta) {
    if (JSON.stringify(told) !== JSON.stringify(host.told)) await host.handle.update({ options });
  } else {
    const input = await inputOf(scene, host, needed(host));
    if (host.gone) return;
    if (host.handle?.stage.rows.count === input.meta.rows)
      await host.handle.update({ ...input, options });
    else await remount(host, { ...input, options: told });
  }
  host.shown = scene.meta;
  if (host.handle) host.handle.stage.root.dataset.scene = scene.meta;
  host.told = told;
  take(host, data);
}

/** @param {Host} host @param {Input} input */
async function remount(host, input) {
  host.handle?.destroy();
  host.taken = undefined;
  const tell = (/** @type {string} */ name, /** @type {object} */ what) => {
    host.acts += 1; // not `stamp.number`, because the host would wait for an answer to a selection
    host.send(name, { ...host.stamp, number: host.acts, ...what });
  };
  const onAct = (/** @type {string} */ kind, /** @type {string} */ name) => tell(kind, { name });
  host.handle = mount(boxOf(host), input, {
    onSelect: (bits, count) => {
      host.stamp.number += 1;
      host.taken = undefined;
      host.send('selection', { ...host.stamp, bits: count ? toBase64(bits) : null });
    },
    describe: (rows) => describe(host, rows),
    ...(host.last?.options.selections && { onAct, acts, colours: () => bar?.told.colours ?? [] }),
    ...(host.last?.holds && {
      onPoint: (/** @type {number} */ row) => {
        tell('point', { row });
        if (row >= 0) document.body.dataset.drawer = 'open'; // in a narrow window, the drawer may be closed
      },
    }),
    project: async (rows) =>
      new Float32Array(await (await asked(host, 'scores', rows)).arrayBuffer()),
  });
  const { stage } = host.handle;
  if (host.last?.options.selections)
    stage.settled.push(() => {
      // a search or a tour may have opened another layout
      const [first, second] = stage.views.map(({ layout }) => layout.name);
      const names = [first, second].filter(Boolean).join('+');
      if (host.busy || !host.layouts || names === host.layouts) return;
      host.layouts = names;
      onAct('view', second === 'pairs' ? 'both' : first);
    });
  await host.handle.ready;
}

/** Return the page's actions for the palette: links, and undo and redo if possible. @returns {Act[]} */
function acts() {
  const links = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('nav li a'));
  return [
    ...(bar?.controls.acts() ?? []),
    ...[...links].map((link, i) => ({
      label: `Go to ${link.querySelector('p')?.textContent ?? link.title}`,
      key: String(i + 1),
      run: () => link.click(),
    })),
  ];
}

/** Show the page's selection, unless the user has made a newer selection here. @param {Host} host `taken` is the page's last selection, undefined after the user's own @param {Message} data */
function take(host, { selected, seen }) {
  const { stamp, handle } = host;
  const isSeen = seen && seen[0] === stamp.mount && seen[1] >= stamp.number;
  if (!handle || selected === host.taken || (stamp.number && !isSeen)) return;
  host.taken = selected;
  handle.select(selected ? ofBase64(selected) : []);
}
