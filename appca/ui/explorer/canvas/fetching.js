/** What the browser fetches from the server: scenes, when they are wanted or ahead of that. */

import { join } from './scene/bytes.js';

/** @typedef {import('./host.js').Address} Address @typedef {import('./types.js').Input} Input @typedef {{key: string}} Holder */

/** Fetch what a scene is made of when it is first needed. @param {Address} scene @param {Holder} holder @returns {Promise<Input>} */
export async function inputOf(scene, holder) {
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

/** The same, with some of its buffers and the pictures of its components at hand. @param {Address} scene @param {Holder} holder @param {string[]} names @returns {Promise<Input>} */
export async function inputAhead(scene, holder, names) {
  const input = await inputOf(scene, holder);
  const buffers = Object.fromEntries(Object.entries(input.buffers).map(([name, get]) => {
    /** @type {Promise<ArrayBuffer> | undefined} */
    let found;
    return [name, () => (found ??= get())];
  }));
  await Promise.all([...names.filter((name) => name in buffers).map((name) => buffers[name]()), input.sheets?.components?.()]);
  return { ...input, buffers };
}

/** The server does not have it, or not for this session. */
export class Gone extends Error {}

/** @param {string} address @param {Holder} holder @param {RequestInit} [how] */
export async function fetched(address, holder, how = {}) {
  const answer = await fetch(address, { ...how, headers: { 'X-Appca-Key': holder.key } });
  if (!answer.ok) throw new Gone(String(answer.status));
  return answer;
}
