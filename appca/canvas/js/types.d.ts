/** Types shared by the modules of the canvas; docs/scene.md documents `meta`. */

type Rect = { x: number; y: number; w: number; h: number };
/** Lowest x, highest x, lowest y, highest y. */
type Bounds = [number, number, number, number];
type Limits = [[number, number], [number, number]];
type Kind = 'triangle' | 'grid' | 'strips' | 'map';

interface Component {
  number: number; name?: string; // shown to users, counted from 1; given by the user
  columns?: [string, number][]; // columns of a table with the largest weights, from -1 to 1
  spread?: number; // standard deviation of a row's score, given its components
}

interface PanelMeta {
  components: number[]; // indices into `meta.components`, ascending
  axes: number[]; // components on x and y
  start: number; // index of its first listed row in `order.*`
  listed: number; count: number; // number of listed rows, and of all rows
  cell?: [number, number]; // column and row in a triangle
  size?: number; // side of its card in a grid
  levels: number[]; // level k: number of images that fit at a distance of spacing / 2 ** (k / 4) panel sides
  range: Limits; // range of the scores on x and y
}

interface LayoutMeta {
  kind: Kind; title: string; panels: PanelMeta[]; spacing: number; limits?: Limits;
  axes?: string[][]; // names of a map's x and y, the longest first
  other?: { start: number; count: number; subspaces: number }; drawn?: { rows: number; points: number; of: number };
}

interface Colouring {
  kind: 'category' | 'quantity' | 'plane'; // plane: a square of colours for two components
  title?: string; table: string[]; names: string[]; // the code after the last name means "missing"
  steps?: boolean; // whether the classes are steps of a scale, which do not label places
  shapes?: string[]; // shapes of the classes, if colours alone cannot distinguish them
  limits?: [number, number]; clipped?: boolean[]; // clipped: whether values are below and above
  axes?: number[]; // components of a plane
}

interface SheetMeta {
  tile: [number, number, number]; // height, width, channels
  cell: number; columns: number; per_sheet: number; count: number; style: 'ink' | 'photo' | 'name';
}

interface Meta {
  format: 1; rows: number; components: Component[]; score_unit: number;
  n_active: number | null; most_used?: number; // n_active is null if rows differ
  centred?: boolean; // false if scores are added to zero, not to the average
  layouts: Record<string, LayoutMeta>; colourings: Record<string, Colouring>; sheets?: SheetMeta;
  /** Pictures for the light theme, then for the dark theme. */
  component_pictures?: { cell: number; columns: number; tile: [number, number, number] };
  words?: { row?: string; rows?: string; first?: number }; // first: number of the first row
  buffers?: Record<string, [string, number]>; // number type and length, by name
  hover?: { ids: string | null; lines: Line[] } | null;
  first?: string; // the layout shown first
  doubt_below: number; // rows with a lower membership, out of 255, are drawn hollow
}

/** A line of the hover card. */
type Line = { title: string; kind: 'category' | 'number' | 'text'; buffer: string; names?: string[] };

interface Input {
  meta: Meta; buffers: Record<string, () => Promise<ArrayBuffer>>;
  sheets?: { tile?: (sheet: number) => Promise<ImageBitmapSource>; components?: () => Promise<ImageBitmapSource> };
  options?: Options;
  gpu?: import('./gl/gpu.js').Gpu; // reused from a previous picture
}

interface Options {
  layout?: string; // or "both": subspaces with pairs beside them, the default if both exist
  beside?: string; // the layout of a second view, '' for none
  colouring?: string; theme?: 'light' | 'dark'; ghosts?: boolean;
  dense?: number; // density of images relative to the default
  filter?: Filter; tool?: 'pan' | 'lasso' | 'box'; dpr?: number;
  panels?: string[]; // shows only the panels with these names, and no maps
  compact?: boolean; scrolls?: boolean; // no title, legend and tools; the wheel scrolls the page until a click
  sought?: string[]; // gathered subspaces to open as panels, such as "0,3,4"
  came?: string[]; // origin of each component: "was 5", "new" or ""
  coarse?: boolean; // the fit follows soon
  held?: number; // the focused row, whose details are on the page; -1: none
  near?: number[]; // the rows nearest to the focused row
  selections?: [string, number][]; // the host's named selections: name and number of rows
}

/** Choices and current values of the controls. */
interface Controls {
  sizes?: Sizes;
  colours: string[][]; // key, name and group of each colouring
  colour: string; view: string;
  columns?: number; // number of columns if `colours` has only one of them
  views: string[][]; // key and title
  beside?: boolean; // whether a second view is shown
  steps?: [boolean, boolean]; // whether undo and redo are possible
}

/** Sizes that a host can fit: any K and L, or those listed. */
interface Sizes {
  k: number; l: number | 'learned' | null; most_k: number; ks?: number[]; ls?: number[];
  hint?: string; // explains K and L
}

/** A size chosen by the user; `moving` during a slider's drag. */
type Size = { k: number; l: number | null; moving: boolean };

interface Filter {
  components?: number[]; // indices; a panel is shown if it has all of them
  classes?: number[]; // codes of the classes to show
  least?: number; // minimum number of rows in a panel
  certainty?: number; // minimum membership, 0..1
}

interface Callbacks {
  onSelect?: (bits: Uint8Array, count: number) => void;
  /** A click focuses a row (-1: none); without this callback, a click selects the row. */
  onPoint?: (row: number) => void;
  /** Show a named selection, a colour or a view, leave out the selected class or rows, or rename a class: label, old and new name as JSON. */
  onAct?: (kind: 'named' | 'colour' | 'view' | 'class' | 'leave_out', name: string) => void;
  acts?: () => Act[]; // the host's actions, for the palette
  colours?: () => Controls['colours']; // for the palette
  project?: (rows: number[]) => Promise<Float32Array>; // scores of rows on all components, for ghosts
  /** Lines of the hover card for each row, if the scene has none. */
  describe?: (rows: number[]) => Promise<string[][]>;
}

interface Panel {
  index: number; name: string; components: number[]; axes: number[]; start: number; count: number;
  cell?: [number, number]; size: number; other?: boolean; // contains the rows of all gathered subspaces
  levels: number[]; range: Bounds;
  extent: Bounds; // range of all points, in units of the scores' buffer
}

interface Layout {
  name: string; kind: Kind; title: string; panels: Panel[]; spacing: number;
  rows: Uint32Array; // row number of each point
  xy: Int16Array; // two coordinates of each point
  feet: boolean; axes?: string[][]; // whether axes are named below each panel; those of a map
  revision: number; // increases when the axes of a panel change
}

/** The world point in the middle of the view, and pixels per unit. */
type Camera = { x: number; y: number; k: number };
/** Panels of one layout; `base` is the index of the first panel in the panel table. */
type Part = { layout: Layout; base: number; rects: Rect[]; inset: boolean };

/** The position of a panel on the page. */
interface Placed {
  key: number; // index in the panel table
  view: View; part: Part; panel: Panel; card: Rect;
  plot: Rect; // rectangle of the points, inside the card
  range: Bounds; // scores at the edges of the plot
  open: boolean; strength: number; // opacity, 0 to 1
}

/** Settings for drawing all points. */
interface Look {
  width: number; height: number; dpr: number; selecting: boolean;
  only: number; // code of the class shown alone, or -1
  grey: string;
}

/** Text at (u, v), a share of the plot; `ends` are rows whose images are beside the first line. */
interface Label {
  key: number; layout: Layout; revision: number; u: number; v: number;
  lines: { text: string; style: string; colour: string }[];
  align: CanvasTextAlign; width: number; cell?: number; ends?: number[];
}

/** A row and its place on the page. */
type Found = { row: number; x: number; y: number; spot: Placed; index: number };
type How = 'replace' | 'add' | 'subtract';
/** A row, all rows of a class, or all panels of a component. */
type Target = {
  panel?: number; sought?: number[]; layout?: string; row?: number; code?: number; component?: number;
};
type HitKind = 'panel' | 'component' | 'class' | 'selection' | 'row' | 'column' | 'action';
/** Enter calls `run`, or without it flies to `target`; `key` is a shortcut for the same. */
type Hit = {
  kind: HitKind; label: string; note?: string; target?: Target; component?: number; code?: number;
  row?: number; key?: string; run?: () => void;
};
type Act = { label: string; key?: string; run: () => void };

// Fits computed in the page

type Values = Float64Array | Float32Array | Uint8Array;
type Latent = 'shared' | 'component';
/** Rows are `factor` times `values` minus `origin`; `total` (sum of squares) and `features` are those before a reduction to coordinates. */
type Matrix = {
  values: Values; n: number; d: number; factor: number; origin: Float64Array;
  total: number; features: number;
};
/** W is d x K; the model's mean is the mean of the rows minus W shift. */
type FitState = { W: Float64Array; shift: Float64Array; latent: Float64Array; noise: number };
/** Log-likelihood in nats, and sums over rows. */
type Sums = { value: number } & Record<'A' | 'sum' | 'second' | 'used', Float64Array>;
type Step = { value: number; state: FitState; next: FitState };
/** Results for each row; scores, active and inclusion are n x K. */
type Described = { active: Uint8Array; K: number; L: number } & Record<
  'scores' | 'inclusion' | 'membership' | 'error', Float32Array> &
  Record<'density' | 'variance', Float64Array>;
/** A data set of the page: `values` are divided by `divide`, or standardised from a table's `raw` values. */
type PageData = {
  name: string; values: Values; n: number; d: number; divide: number; note: string;
  shape: number[] | null; names: string[] | null; ids: string[] | null;
  labels: { name: string; names: string[]; codes: ArrayLike<number> }[];
  provenance: { source?: string }; raw?: Values; offset?: Float64Array; scale?: Float64Array;
};
/** Colours from appca/plots, and the default settings of a fit. */
type PageLook = Record<'few' | 'many' | 'shapes' | 'ramp', string[]> &
  Record<'light' | 'dark', number[][]> & { missing: string; settings: object };

type Actions = import('./input/actions.js').Actions;
type Gpu = import('./gl/gpu.js').Gpu;
type Handle = ReturnType<typeof import('./mount.js').mount>;
type Rows = import('./scene/rows.js').Rows;
type Scene = import('./scene/scene.js').Scene;
type Stage = import('./stage.js').Stage;
type Theme = typeof import('./theme.js').THEMES.light;
type View = import('./layout/view.js').View;
