/** A small script that Streamlit sends with every change; it loads the host script only once. */

const SCRIPT = 'NAME'; // path below the address of scenes

/** @type {Function | null} */ let show = null;
/** @type {Promise<void> | null} */ let loading = null;

/** Called by Streamlit at every rerun and theme change. @param {{data: import('./host.js').Message}} call */
export default function load(call) {
  if (show) return show(call);
  let gone = false;
  /** @type {Function | null} */ let undo = null;
  loading ??= import(new URL(call.data.scene.at + SCRIPT, location.href).href).then((host) => {
    show = host.default;
  });
  loading.then(
    () => gone || (undo = show?.(call)),
    () => (loading = null), // the next rerun tries again
  );
  return () => {
    gone = true;
    undo?.();
  };
}
