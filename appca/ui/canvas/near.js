/** The scenes one step of K or L away, fetched before a slider asks for them. */

import { asked, inputOf } from './fetching.js';

/** @typedef {import('./host.js').Address} Address @typedef {import('./host.js').Host} Host */
/** @typedef {{address: Address, scene: import('../../canvas/js/scene/scene.js').Scene}} Near */

const STEPS = 4; // K and L up and down
const LOOKS = 12; // for the scenes one step away, whose fits are made while nothing moves
const [BETWEEN, LONGER] = [1000, 1.2]; // milliseconds, and times as many at each look

/** Fetch the scenes one step of K or L away, as far as their fits are at hand. @param {Host} host @param {Address} scene */
export function lookAround(host, scene) {
  clearTimeout(host.timer);
  host.around = {};
  const look = async (/** @type {number} */ number) => {
    const near = await (await asked(host, 'near', [0], scene)).json();
    for (const [step, address] of Object.entries(near)) {
      if (step in host.around || !host.handle) continue;
      const opened = await host.handle.ahead(await inputOf(address, host, needed(host)));
      if (host.address?.questions !== scene.questions) return;
      host.around[step] = { address: address, scene: opened };
    }
    if (number < LOOKS && Object.keys(near).length < STEPS) wait(number + 1);
  };
  const wait = (/** @type {number} */ number) => {
    host.timer = setTimeout(() => look(number).catch(() => {}), BETWEEN * LONGER ** number); // a slider still works without
  };
  if (scene.near) wait(0);
}

/** Buffers that the views shown need of another scene. @param {Host} host */
export const needed = ({ handle }) => [
  'components',
  'scores',
  'doubt',
  'outside',
  `codes.${handle?.stage.colouringName}`,
  ...(handle?.stage.views.flatMap(({ layout, map }) =>
    [layout, map ?? layout].flatMap(({ name }) => [`order.${name}`, `map.${name}`]),
  ) ?? []),
];
