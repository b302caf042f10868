/**
 * Reading what Python packed: a frame is the length of a JSON header, the header, raw arrays.
 */

const ARRAY_TYPES = {
  u1: Uint8Array,
  i1: Int8Array,
  b1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i4: Int32Array,
  f4: Float32Array,
};

/**
 * Unpack a frame.
 *
 * @param {Uint8Array} bytes
 * @returns {{header: Object, parts: ArrayBufferView[]}} the header and its typed arrays
 */
export function decodeFrame(bytes) {
  const { header, end } = readHeader(bytes);
  const parts = [];
  let offset = end;
  for (const [type, count] of header.parts) {
    const ArrayType = ARRAY_TYPES[type];
    if (!ArrayType) throw new Error(`A frame holds an array of the unknown type ${type}.`);
    const length = count * ArrayType.BYTES_PER_ELEMENT;
    parts.push(new ArrayType(bytes.slice(offset, offset + length).buffer));
    offset += Math.ceil(length / 8) * 8;
  }
  return { header, parts };
}

/**
 * Read a frame's header alone.
 *
 * @param {Uint8Array} bytes
 * @returns {{header: Object, end: number}} and where the arrays start
 */
export function readHeader(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = 4 + view.getUint32(0, true);
  return { header: JSON.parse(new TextDecoder().decode(bytes.subarray(4, end))), end };
}

/**
 * Put the arrays back where the header has references to them.
 *
 * @param {*} spec nested objects and lists with {"part": k} in them
 * @param {ArrayBufferView[]} parts
 */
export function restoreParts(spec, parts) {
  if (Array.isArray(spec)) return spec.map((value) => restoreParts(value, parts));
  if (spec === null || typeof spec !== 'object') return spec;
  if (Number.isInteger(spec.part)) return parts[spec.part];
  const copy = {};
  for (const [key, value] of Object.entries(spec)) copy[key] = restoreParts(value, parts);
  return copy;
}

/** @param {Uint8Array} bytes */
export function toBase64(bytes) {
  const chunk = 8192; // a call takes a limited number of arguments
  let text = '';
  for (let start = 0; start < bytes.length; start += chunk) {
    text += String.fromCharCode(...bytes.subarray(start, start + chunk));
  }
  return btoa(text);
}
