/** The canvas as a part of a Streamlit page: what a rerun says becomes changes of the picture, a selection goes back. */

import { join, ofBase64, toBase64 } from './scene/bytes.js';
import { mount } from './mount.js';

/** @typedef {{at: string, key: string, meta: string, buffers: Record<string, string[]>, sheets: string[], components: string | null, questions: string}} Address */
/** @typedef {{scene: Address, options: import('./types.js').Options, selected: string | null, seen: [string, number] | null}} Message */
/** @typedef {{handle: import('./mount.js').Handle, key: string, shown: string, options: string, stamp: {mount: string, number: number}, send: Function}} Host */

/** @type {WeakMap<Element, Host>} */
const hosts = new WeakMap();

/** What Streamlit calls at every rerun and theme change. @param {{data: Message, parentElement: HTMLElement, setStateValue: Function}} call */
export default function show({ data, parentElement, setStateValue }) {
  const known = hosts.get(parentElement);
  if (known) known.send = setStateValue;
  const options = { ...data.options, theme: isDark(parentElement) ? 'dark' : 'light' };
  follow(known, data, options, parentElement, setStateValue).catch((error) => {
    if (error instanceof Gone) setStateValue('lost', `${data.scene.key} ${error.message}`); // a rerun offers it again
    else throw error;
  });
  return () => {
    hosts.get(parentElement)?.handle.destroy();
    hosts.delete(parentElement);
  };
}

/** @param {Host | undefined} host @param {Message} data @param {any} options @param {HTMLElement} parent @param {Function} send */
async function follow(host, data, options, parent, send) {
  const told = JSON.stringify(options);
  if (host && host.shown === data.scene.meta) {
    host.key = data.scene.key;
    take(host, data);
    if (told !== host.options) await host.handle.update({ options });
    host.options = told;
    return;
  }
  const next = { key: data.scene.key };
  const input = await inputOf(data.scene, host ?? next);
  if (host && host.handle.stage.rows.count === input.meta.rows) {
    Object.assign(host, { key: data.scene.key, shown: data.scene.meta, options: told });
    await host.handle.update({ ...input, options });
    take(host, data);
    return;
  }
  host?.handle.destroy();
  /** @type {Host} */
  const made = { ...next, shown: data.scene.meta, options: told, stamp: { mount: crypto.randomUUID(), number: 0 }, send, handle: /** @type {any} */ (null) };
  hosts.set(parent, made);
  const box = parent.querySelector('.appca-canvas-box') ?? parent;
  made.handle = mount(/** @type {HTMLElement} */ (box), { ...input, options }, {
    onSelect: (bits, count) => {
      made.stamp.number += 1;
      made.send('selection', { ...made.stamp, bits: count ? toBase64(bits) : null });
    },
    describe: (rows) => describe(data.scene, made, rows),
  });
  await made.handle.ready;
  take(made, data);
}

/** Take over the selection of the pages, unless the hand has made a newer one meanwhile. @param {Host} host @param {Message} data */
function take(host, { selected, seen }) {
  const { stamp, handle } = host;
  if (stamp.number && !(seen && seen[0] === stamp.mount && seen[1] >= stamp.number)) return;
  handle.select(selected ? ofBase64(selected) : new Uint8Array(Math.ceil(handle.stage.rows.count / 8)));
}

/** Fetch what a scene is made of when it is first needed. @param {Address} scene @param {{key: string}} holder @returns {Promise<import('./types.js').Input>} */
async function inputOf(scene, holder) {
  const get = (/** @type {string} */ name) => fetched(`${scene.at}${name}`, holder);
  const meta = await (await get(scene.meta)).json();
  const buffer = async (/** @type {string[]} */ names) => join(await Promise.all(names.map(async (name) => (await get(name)).arrayBuffer())));
  const { components } = scene;
  return {
    meta,
    buffers: Object.fromEntries(Object.entries(scene.buffers).map(([name, shards]) => [name, () => buffer(shards)])),
    sheets: {
      tile: async (number) => (await get(scene.sheets[number])).blob(),
      ...(components ? { components: async () => (await get(components)).blob() } : {}),
    },
  };
}

/** Lines of the hover card of rows that the scene has no texts of. @param {Address} scene @param {{key: string}} holder @param {number[]} rows */
async function describe(scene, holder, rows) {
  const answer = await fetched(`${scene.at}${scene.questions}/texts`, holder, { method: 'POST', body: new Uint32Array(rows) });
  const { ids, lines } = await answer.json();
  return rows.map((_, i) => [ids[i], ...lines.map((/** @type {any} */ { title, values }) => `${title}: ${values[i]}`)]);
}

class Gone extends Error {}

/** @param {string} address @param {{key: string}} holder @param {RequestInit} [how] */
async function fetched(address, holder, how = {}) {
  const answer = await fetch(address, { ...how, headers: { 'X-Appca-Key': holder.key } });
  if (!answer.ok) throw new Gone(String(answer.status));
  return answer;
}

/** Whether Streamlit shows the page dark. @param {Element} element */
function isDark(element) {
  const ground = getComputedStyle(element).getPropertyValue('--st-background-color').trim();
  const hex = ground.replace('#', '');
  return hex.length === 6 && parseInt(hex.slice(0, 2), 16) + parseInt(hex.slice(2, 4), 16) + parseInt(hex.slice(4, 6), 16) < 384;
}
