/** The types that modules of the canvas share; what the parts of `meta` mean stands with the packer. */

type Rect = { x: number; y: number; w: number; h: number };
/** Lowest x, highest x, lowest y, highest y. */
type Bounds = [number, number, number, number];
type Limits = [[number, number], [number, number]];
type Kind = 'triangle' | 'grid' | 'strips' | 'map';

// What a host hands over

interface Component {
  number: number; // what people see
  name?: string; // what a person called it
  columns?: [string, number][]; // of a table that weigh most, from -1 to 1
  spread?: number; // standard deviation of a row's score, given its components
}

interface PanelMeta {
  components: number[]; // indices into `meta.components`, ascending
  axes: number[]; // the components of x and y
  start: number; // of its listed rows in `order.*`
  listed: number;
  count: number; // of all its rows
  cell?: [number, number]; // column and row of a triangle
  size?: number; // of its card in a grid
  levels: number[]; // images that have room at a distance of spacing / 2 ** (k / 4) sides
  range: Limits; // scores shown
}

interface LayoutMeta {
  kind: Kind; title: string; panels: PanelMeta[]; spacing: number; limits?: Limits;
  other?: { start: number; count: number; subspaces: number };
  drawn?: { rows: number; points: number; of: number };
}

interface Colouring {
  kind: 'category' | 'quantity' | 'plane'; // of a plane: a square of colours for two components
  title?: string;
  names: string[]; // of the classes; the code after the last is "missing"
  steps?: boolean; // whether the classes are steps of a scale, which name no place
  table: string[];
  shapes?: string[]; // of the classes, where colours alone do not tell them apart
  limits?: [number, number];
  clipped?: boolean[]; // whether values lie below and above the limits
  axes?: number[]; // of a plane
}

interface SheetMeta {
  tile: [number, number, number]; // height, width, channels
  cell: number; columns: number; per_sheet: number; count: number; style: 'ink' | 'photo';
}

interface Meta {
  format: 1; rows: number; components: Component[]; score_unit: number;
  n_active: number | null; // null where rows differ
  most_used?: number;
  centred?: boolean; // false where scores are added to zero, not to the average
  layouts: Record<string, LayoutMeta>; colourings: Record<string, Colouring>; sheets?: SheetMeta;
  /** Those for a dark ground after the light ones. */
  component_pictures?: { cell: number; columns: number; tile: [number, number, number] };
  words?: { row?: string; rows?: string; first?: number }; // first: the first row's number
  buffers?: Record<string, [string, number]>; // kind of number and length, by name
  hover?: { ids: string | null; lines: Line[] } | null;
  first?: string; // layout
  doubt_below: number; // a row is drawn hollow, of 255
}

/** A line of the hover card. */
type Line = { title: string; kind: 'category' | 'number' | 'text'; buffer: string; names?: string[] };

interface Input {
  meta: Meta; buffers: Record<string, () => Promise<ArrayBuffer>>;
  sheets?: { tile?: (sheet: number) => Promise<ImageBitmapSource>; components?: () => Promise<ImageBitmapSource> };
  options?: Options;
  gpu?: import('./gl/gpu.js').Gpu; // of a picture that was here
}

interface Options {
  layout?: string; // or "both": subspaces, and pairs beside them, which opens where there are both
  beside?: string; // the layout of a second view, '' for none
  colouring?: string; theme?: 'light' | 'dark'; ghosts?: boolean;
  dense?: number; // how much closer than usual images stand
  filter?: Filter; tool?: 'pan' | 'lasso' | 'box'; dpr?: number;
  panels?: string[]; // names of the only panels to show, without maps
  compact?: boolean; // without title, legend and tools
  sought?: string[]; // components, as "0,3,4", of gathered subspaces that have a panel
  came?: string[]; // by component "was 5" or "new" where it was not in the picture before
  held?: number; // the row whose details are on the page, -1 for none
  near?: number[]; // the rows nearest to it
  selections?: [string, number][]; // named ones of the host with their rows
}

/** What the controls offer and show. */
interface Controls {
  sizes?: Sizes;
  colours: string[][]; // key, name and group of each that rows can be coloured by
  colour: string;
  columns?: number; // where only one of them is in `colours`
  views: string[][]; // key and title
  view: string;
  beside?: boolean; // whether a second view is shown
  steps?: [boolean, boolean]; // whether undo and redo are possible
}

/** What a host can fit: any K and L, or some. */
interface Sizes {
  k: number; l: number | 'learned' | null;
  most_k: number; ks?: number[]; ls?: number[];
  hint?: string; // what they mean
}

/** What the hand has chosen, or a slider moves over. */
type Size = { k: number; l: number | null; moving: boolean };

interface Filter {
  components?: number[]; // indices; a panel shows when it has all of them
  classes?: number[]; // codes that are shown
  least?: number; // rows of a panel
  certainty?: number; // 0..1
}

interface Callbacks {
  onSelect?: (bits: Uint8Array, count: number) => void;
  /** A click holds a row, -1 lets go; without it a click selects the row. */
  onPoint?: (row: number) => void;
  /** Show a named selection, a colour or a view, leave out the selected class or rows, or rename a class: label, old and new name as JSON. */
  onAct?: (kind: 'named' | 'colour' | 'view' | 'class' | 'leave_out', name: string) => void;
  acts?: () => Act[]; // what the host can do, for the palette
  colours?: () => Controls['colours']; // for the palette
  project?: (rows: number[]) => Promise<Float32Array>; // scores of rows on all components, for ghosts
  /** Lines of the hover card, by row, where the scene has none. */
  describe?: (rows: number[]) => Promise<string[][]>;
}

// What the picture is made of

interface Panel {
  index: number; name: string; components: number[]; axes: number[]; start: number; count: number;
  cell?: [number, number]; size: number;
  other?: boolean; // holds the rows of all gathered subspaces
  levels: number[]; range: Bounds;
  extent: Bounds; // in units of the scores' buffer
}

interface Layout {
  name: string; kind: Kind; title: string; panels: Panel[]; spacing: number;
  rows: Uint32Array; // row number of each point
  xy: Int16Array; // two coordinates of each point
  feet: boolean; // whether panels say below what their axes are
  revision: number; // changes with the axes of a panel
}

/** The world's point at the middle, pixels a unit. */
type Camera = { x: number; y: number; k: number };
/** Panels of one layout; `base` is their place in the panel table. */
type Part = { layout: Layout; base: number; rects: Rect[]; inset: boolean };

/** Where a panel stands on the page. */
interface Placed {
  key: number; // place in the panel table
  view: View; part: Part; panel: Panel; card: Rect;
  plot: Rect; // inside the card
  range: Bounds; // of scores in the plot
  strength: number; // 0 to 1
  open: boolean;
}

/** What all points share. */
interface Look {
  width: number; height: number; dpr: number; selecting: boolean;
  only: number; // a code shown alone, or -1
  grey: string;
}

/** With rows whose images stand beside the first line, at a share of the plot. */
interface Label {
  key: number; layout: Layout; revision: number; u: number; v: number;
  lines: { text: string; style: string; colour: string }[];
  align: CanvasTextAlign; width: number; cell?: number; ends?: number[];
}

/** A row and where it stands on the page. */
type Found = { row: number; x: number; y: number; spot: Placed; index: number };
type How = 'replace' | 'add' | 'subtract';
/** A row, all rows of a class, or all panels of a component. */
type Target = {
  panel?: number; sought?: number[]; layout?: string; row?: number; code?: number; component?: number;
};
type HitKind = 'panel' | 'component' | 'class' | 'selection' | 'row' | 'column' | 'action';
/** `run` does what Enter does where it is not to fly to `target`; `key` does it, too. */
type Hit = {
  kind: HitKind; label: string; note?: string; target?: Target; component?: number; code?: number;
  row?: number; key?: string; run?: () => void;
};
type Act = { label: string; key?: string; run: () => void };

// Fits made in the page

type Values = Float64Array | Float32Array | Uint8Array;
type Latent = 'shared' | 'component';
/** Rows: `factor` times values, about their mean; `total`, `features` count what coordinates lack. */
type Matrix = {
  values: Values; n: number; d: number; factor: number; origin: Float64Array;
  total: number; features: number;
};
/** W is d x K; the mean is that of the rows less W shift. */
type FitState = { W: Float64Array; shift: Float64Array; latent: Float64Array; noise: number };
/** Log-likelihood in nats, and sums over rows. */
type Sums = { value: number } & Record<'A' | 'sum' | 'second' | 'used', Float64Array>;
type Step = { value: number; state: FitState; next: FitState };
/** By row; scores, active and inclusion are n x K. */
type Described = { active: Uint8Array; K: number; L: number } & Record<
  'scores' | 'inclusion' | 'membership' | 'error', Float32Array> &
  Record<'density' | 'variance', Float64Array>;
/** A data set of the page; values are divided by `divide`, a table is standardised from `raw`. */
type PageData = {
  name: string; values: Values; n: number; d: number; divide: number; note: string;
  shape: number[] | null; names: string[] | null; ids: string[] | null;
  labels: { name: string; names: string[]; codes: ArrayLike<number> }[];
  provenance: object; raw?: Values; offset?: Float64Array; scale?: Float64Array;
};
/** Colours, as appca/plots has them, and settings of a fit by default. */
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
