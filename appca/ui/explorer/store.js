/**
 * What all parts of a page share. Every component is a module of its own, so it hangs on window.
 *
 * parcels: name -> {bytes, holders}; sheets: decoded sprite sheets, see sheets.js; views: zoom by
 * explorer key, kept over page changes; listeners: called when a parcel or a sheet has arrived.
 */

export function sharedStore() {
  window.__appca ??= {
    parcels: new Map(),
    sheets: new Map(),
    views: new Map(),
    listeners: new Set(),
    announcing: false,
  };
  return window.__appca;
}

/** Tell all listeners, once for all that arrives in one go: each looks at everything there is. */
export function announce(store) {
  if (store.announcing) return;
  store.announcing = true;
  queueMicrotask(() => {
    store.announcing = false;
    for (const listener of store.listeners) listener();
  });
}

/** Keep a parcel; two holders of the same name share it. */
export function holdParcel(store, name, bytes) {
  const parcel = store.parcels.get(name);
  if (parcel) parcel.holders += 1;
  else store.parcels.set(name, { bytes, holders: 1 });
  announce(store);
}

/** Let a parcel go; forgotten with its last holder. */
export function dropParcel(store, name) {
  const parcel = store.parcels.get(name);
  if (!parcel) return;
  parcel.holders -= 1;
  if (parcel.holders <= 0) store.parcels.delete(name);
}
