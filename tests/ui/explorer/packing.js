/** Pack as payload.py does, written again here. */
export function packed(header, arrays) {
  const text = JSON.stringify({ ...header, parts: arrays.map(([type, a]) => [type, a.length]) });
  const padded = text + ' '.repeat((8 - ((text.length + 4) % 8)) % 8);
  const chunks = [Buffer.alloc(4), Buffer.from(padded)];
  chunks[0].writeUInt32LE(padded.length);
  for (const [, array] of arrays) {
    const raw = Buffer.from(array.buffer);
    chunks.push(raw, Buffer.alloc((8 - (raw.length % 8)) % 8));
  }
  return new Uint8Array(Buffer.concat(chunks));
}
