/** What the browser fetches from the server. */

import { join } from '../../canvas/js/scene/bytes.js';

/** @typedef {import('./host.js').Address} Address @typedef {import('../../canvas/js/types.js').Input} Input @typedef {{key: string}} Holder @typedef {import('./host.js').Host} Host */

/** Fetch what a scene is made of when it is first needed, and some of its buffers, with the components' pictures, together with what says how to read them. @param {Address} scene @param {Holder} holder @param {string[]} [names] @returns {Promise<Input>} */
export async function inputOf(scene, holder, names = []) {
  const get = (/** @type {string} */ name) => fetched(`${scene.at}${name}`, holder);
  const buffer = async (/** @type {string[]} */ shards) =>
    join(await Promise.all(shards.map(async (shard) => (await get(shard)).arrayBuffer())));
  const { components } = scene;
  const pictures = async (/** @type {string} */ name) => (await get(name)).blob();
  /** @type {Map<string, Promise<any>>} */
  const asked = new Map(
    names
      .filter((name) => name in scene.buffers)
      .map((name) => [name, buffer(scene.buffers[name])]),
  );
  if (names.length && components) asked.set(components, pictures(components));
  for (const answer of asked.values()) answer.catch(() => {}); // whoever takes it is told
  const meta = await (await get(scene.meta)).json();
  const taken = (/** @type {string} */ name) => {
    const answer = asked.get(name);
    asked.delete(name);
    return answer;
  };
  return {
    meta,
    buffers: Object.fromEntries(
      Object.entries(scene.buffers).map(([name, shards]) => [
        name,
        () => taken(name) ?? buffer(shards),
      ]),
    ),
    sheets: {
      tile: (number) => pictures(scene.sheets[number]),
      ...(components ? { components: () => taken(components) ?? pictures(components) } : {}),
    },
  };
}

/** The server does not have it, or not for this session. */
export class Gone extends Error {}

/** @param {string} address @param {Holder} holder @param {RequestInit} [how] */
export async function fetched(address, holder, how = {}) {
  const answer = await fetch(address, { ...how, headers: { 'X-Appca-Key': holder.key } });
  if (!answer.ok) throw new Gone(String(answer.status));
  return answer;
}

/** What is asked of rows, @param {Host} host @param {'texts' | 'scores'} what @param {number[]} rows */
export const asked = (host, what, rows) =>
  fetched(`${host.address?.at}${host.address?.questions}/${what}`, host, {
    method: 'POST',
    body: new Uint32Array(rows),
  });

/** Lines of the hover card of rows that the scene has no texts of. @param {Host} host @param {number[]} rows */
export async function describe(host, rows) {
  const { ids, lines } = await (await asked(host, 'texts', rows)).json();
  return rows.map((_, i) => [
    ids[i],
    ...lines.map((/** @type {any} */ { title, values }) => `${title}: ${values[i]}`),
  ]);
}
