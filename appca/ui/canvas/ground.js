/** The ground of a Streamlit page. */

import { rgb } from '../../canvas/js/theme.js';

/** Whether Streamlit shows the page dark. @param {Element} element */
export function isDark(element) {
  const ground = getComputedStyle(element).getPropertyValue('--st-background-color').trim();
  return ground.length === 7 && rgb(ground).reduce((sum, part) => sum + part) < 1.5;
}
