/** The ground of a Streamlit page. */

/** Whether Streamlit shows the page dark. @param {Element} element */
export function isDark(element) {
  const ground = getComputedStyle(element).getPropertyValue('--st-background-color').trim();
  const hex = ground.replace('#', '');
  return (
    hex.length === 6 &&
    parseInt(hex.slice(0, 2), 16) + parseInt(hex.slice(2, 4), 16) + parseInt(hex.slice(4, 6), 16) <
      384
  );
}
