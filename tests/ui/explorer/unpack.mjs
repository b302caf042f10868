/** Read a geometry parcel and a message as the browser does; print what each point looks like. */
import { readFileSync } from 'node:fs';

import { colourOf, paintedMarker } from '../../../appca/ui/explorer/colours.js';
import { linesOf } from '../../../appca/ui/explorer/card.js';
import { rowsOfCell } from '../../../appca/ui/explorer/labels.js';
import { readGeometry, readHover, readIds, readMessage } from '../../../appca/ui/explorer/message.js';
import { selectedPlaces } from '../../../appca/ui/explorer/rows.js';

const [geometryFile, messageFile, hoverFile, idsFile] = process.argv.slice(2);
const geometry = readGeometry(new Uint8Array(readFileSync(geometryFile)));
const message = readMessage(new Uint8Array(readFileSync(messageFile)));
const hover = { columns: readHover(new Uint8Array(readFileSync(hoverFile))) };
const ids = readIds(new Uint8Array(readFileSync(idsFile)));

const panels = geometry.panels.map((panel) => ({
  title: panel.title,
  rows: Array.from(panel.rows),
  x: Array.from(panel.x),
  colours: Array.from(panel.rows, (_, place) => colourOf(panel, place, message.colour)),
  symbols: Array.from(paintedMarker(panel, message.colour, { size: 3, ground: '#fff' }).symbol ?? []),
  selected: selectedPlaces(panel.rows, message.selection),
  cells: panel.cells.map((cell, which) => ({
    label: cell.label,
    rows: rowsOfCell(panel, which),
    image: cell.image && Array.from(cell.image),
  })),
  lines: Array.from(panel.rows, (_, place) =>
    linesOf({ hover, axes: geometry.axes }, panel, place),
  ),
}));
process.stdout.write(JSON.stringify({ panels, axes: geometry.axes, seen: message.seen, ids }));
