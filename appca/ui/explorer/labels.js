import { element, readable } from './dom.js';
import { selectedPlaces } from './rows.js';
import { channelsOf } from './theme.js';

/**
 * Titles above the panels, sign cells in their corners: parts of the page over the plot.
 */

/**
 * @param {HTMLElement} root
 * @param {Object[]} panels
 * @param {function(Object, number, Event): void} onCell called with panel and number of the cell
 */
export function fillLabels(root, panels, onCell) {
  const groups = panels.map((panel, number) => {
    const group = element('div', 'appca-panel', null, {
      role: 'application', // arrow keys are the panel's own, not the screen reader's
      'aria-roledescription': 'scatter plot',
      'aria-description': 'Arrow keys go from point to point, question mark tells all keys.',
      tabindex: '0',
      'aria-label': `Panel ${panel.title}, ${panel.subtitle}`,
      'data-panel': String(number),
    });
    group.append(titleOf(panel));
    panel.cells.forEach((cell, which) => group.append(cellButton(panel, cell, which, onCell)));
    return group;
  });
  root.replaceChildren(...groups);
}

function titleOf(panel) {
  const title = element('div', 'appca-title', null, {
    title: `${panel.title}  ${panel.subtitle}`,
  });
  title.append(
    element('b', '', panel.title),
    element('span', 'appca-subtitle', panel.subtitle),
    element('span', 'appca-title-selected', ''),
  );
  return title;
}

function cellButton(panel, cell, which, onCell) {
  const [x, y] = cell.corner;
  const side = `${y >= 0 ? 'top' : 'bottom'}-${x >= 0 ? 'right' : 'left'}`;
  const rows = cell.count === 1 ? 'row' : `${readable(cell.count)} rows`;
  const purpose = `Select the ${rows} with signs ${cell.label}`;
  const button = element('button', `appca-cell appca-cell-${side}`, null, {
    type: 'button',
    title: purpose,
    'aria-label': purpose,
    'aria-pressed': 'false',
    'data-cell': String(which),
  });
  if (cell.image) button.append(element('canvas', 'appca-cell-image', null, { 'aria-hidden': 'true' }));
  const words = element('span', 'appca-cell-words');
  words.append(
    element('b', '', cell.label),
    element('span', 'appca-cell-count', cell.count.toLocaleString('en-US')),
  );
  button.append(words);
  button.addEventListener('click', (event) => onCell(panel, which, event));
  return button;
}

/** Put each panel's part over its plotting area. */
export function placeLabels(root, boxes) {
  boxes.forEach((box, number) => {
    const { style } = root.children[number];
    style.left = `${box.left}px`;
    style.top = `${box.top}px`;
    style.width = `${box.width}px`;
    style.height = `${box.height}px`;
  });
}

/** Note where the cells' buttons lie, relative to the plotting area: images keep clear of them. */
export function measureCells(root, panels) {
  panels.forEach((panel, number) => {
    panel.cellBoxes = Array.from(root.children[number].querySelectorAll('.appca-cell'), (button) => ({
      left: button.offsetLeft,
      top: button.offsetTop,
      right: button.offsetLeft + button.offsetWidth,
      bottom: button.offsetTop + button.offsetHeight,
    }));
  });
}

/** Draw the mean images of the cells: ink in the text's colour, photographs as they are. */
export function drawCellImages(root, panels, ink, textColour) {
  panels.forEach((panel, number) => {
    const canvases = root.children[number].querySelectorAll('canvas');
    panel.cells
      .filter((cell) => cell.image)
      .forEach((cell, i) => drawCellImage(canvases[i], cell, ink ? textColour : null));
  });
}

function drawCellImage(canvas, cell, inkColour) {
  const [height, width] = cell.shape;
  canvas.width = width;
  canvas.height = height;
  const pixels = new ImageData(cellPixels(cell, inkColour), width, height);
  canvas.getContext('2d').putImageData(pixels, 0, 0);
}

/** RGBA of a mean image; with an ink colour its grey is the opacity. */
export function cellPixels(cell, inkColour) {
  const channels = cell.shape.length === 3 ? 3 : 1;
  const count = cell.shape[0] * cell.shape[1];
  const data = new Uint8ClampedArray(4 * count);
  const ink = inkColour ? channelsOf(inkColour) : null;
  for (let i = 0; i < count; i += 1) {
    const source = i * channels;
    for (let c = 0; c < 3; c += 1) {
      data[4 * i + c] = ink ? ink[c] : cell.image[source + (channels === 3 ? c : 0)];
    }
    data[4 * i + 3] = ink ? cell.image[source] : 255;
  }
  return data;
}

/** Mark the cells that are selected as a whole and alone. */
export function pressCells(root, panels, isPressed) {
  panels.forEach((panel, number) => {
    for (const button of root.children[number].querySelectorAll('.appca-cell')) {
      const pressed = isPressed(panel, Number(button.dataset.cell));
      button.setAttribute('aria-pressed', String(pressed));
    }
  });
}

/** Say in the titles how many of a panel's rows are selected. */
export function countSelected(root, panels, selection) {
  panels.forEach((panel, number) => {
    const count = selection ? selectedPlaces(panel.rows, selection).length : 0;
    const words = root.children[number].querySelector('.appca-title-selected');
    words.textContent = count ? `${count.toLocaleString('en-US')} selected` : '';
  });
}

/** Rows of a sign cell. */
export function rowsOfCell(panel, which) {
  const rows = [];
  for (let i = 0; i < panel.rows.length; i += 1) {
    if (panel.cellOf[i] === which) rows.push(panel.rows[i]);
  }
  return rows;
}
