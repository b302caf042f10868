/**
 * Between data and pixels. A frame is a panel's plotting area: pixel box and data ranges,
 * {left, top, width, height, x: [low, high], y: [low, high]}; y grows upwards.
 */

export function toPixels(frame, x, y) {
  return [
    frame.left + ((x - frame.x[0]) / (frame.x[1] - frame.x[0])) * frame.width,
    frame.top + ((frame.y[1] - y) / (frame.y[1] - frame.y[0])) * frame.height,
  ];
}

export function toData(frame, left, top) {
  return [
    frame.x[0] + ((left - frame.left) / frame.width) * (frame.x[1] - frame.x[0]),
    frame.y[1] - ((top - frame.top) / frame.height) * (frame.y[1] - frame.y[0]),
  ];
}

export function holds(frame, left, top) {
  const right = frame.left + frame.width;
  const bottom = frame.top + frame.height;
  return left >= frame.left && left <= right && top >= frame.top && top <= bottom;
}

/** Narrow (factor < 1) or widen a range around its middle. */
export function zoomed([low, high], factor) {
  const middle = (low + high) / 2;
  const half = ((high - low) / 2) * factor;
  return [middle - half, middle + half];
}

/** Shift a range by a share of its width. */
export function shifted([low, high], share) {
  const step = (high - low) * share;
  return [low + step, high + step];
}

/** Plotly's name of panel `number` (from 0) on an axis: x, x2, x3 ... */
export function axisKey(letter, number) {
  return `${letter}axis${number === 0 ? '' : number + 1}`;
}

/**
 * Read a panel's frame from what Plotly has drawn. The two underscored fields are private to
 * plotly.js; the browser tests fail when they change.
 */
export function frameOf(fullLayout, number) {
  const xaxis = fullLayout[axisKey('x', number)];
  const yaxis = fullLayout[axisKey('y', number)];
  return {
    left: xaxis._offset,
    top: yaxis._offset,
    width: xaxis._length,
    height: yaxis._length,
    x: xaxis.range.map(Number),
    y: yaxis.range.map(Number),
  };
}
