/** What is on its way, by name: one step a frame, each can be taken over by another. */

import { clamp } from '../layout/rect.js';

/** The easing cubic-bezier(.3, 0, .1, 1), nearly. @param {number} t */
export const ease = (t) => 1 - (1 - t) ** 3 * (1 - 0.6 * t * (1 - t));

/** @param {number} t */
export const sine = (t) => (1 - Math.cos(Math.PI * t)) / 2;

export class Tweens {
  constructor() {
    /** @type {Map<string, {start: number, ms: number, step: (t: number) => void, done?: () => void}>} */
    this.running = new Map();
    this.motion = matchMedia('(prefers-reduced-motion: reduce)');
  }

  /** @param {string} name @param {number} ms @param {(t: number) => void} step from 0 to 1 @param {() => void} [done] */
  start(name, ms, step, done) {
    if (this.reduced) {
      this.running.delete(name);
      step(1);
      done?.();
      return;
    }
    this.running.set(name, { start: performance.now(), ms, step, done });
    step(0);
  }

  /** @param {string} name */
  stop(name) {
    this.running.delete(name);
  }

  /** Whether what would move stands at once where it ends. */
  get reduced() {
    return this.motion.matches;
  }

  get moving() {
    return this.running.size > 0;
  }

  /** @param {number} now */
  tick(now) {
    for (const [name, motion] of [...this.running]) {
      const t = clamp((now - motion.start) / Math.max(1, motion.ms), 0, 1);
      if (t >= 1) this.running.delete(name);
      motion.step(t);
      if (t >= 1) motion.done?.();
    }
  }
}
