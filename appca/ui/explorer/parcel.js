import { readHeader } from './bytes.js';
import { dropParcel, holdParcel, sharedStore } from './store.js';

/**
 * A component that draws nothing: it keeps named bytes on the page while it is mounted.
 */

const namesByParent = new WeakMap();

export default function mountParcel({ data, parentElement }) {
  const store = sharedStore();
  const bytes = new Uint8Array(data);
  const { name } = readHeader(bytes).header;
  const before = namesByParent.get(parentElement);
  if (before !== name) {
    holdParcel(store, name, bytes);
    namesByParent.set(parentElement, name);
    if (before) dropParcel(store, before);
  }
  return () => {
    dropParcel(store, namesByParent.get(parentElement));
    namesByParent.delete(parentElement);
  };
}
