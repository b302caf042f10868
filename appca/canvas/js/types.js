/**
 * The types that modules of the canvas share; what the parts of `meta` mean stands with the packer.
 *
 * @typedef {{x: number, y: number, w: number, h: number}} Rect
 * @typedef {[number, number, number, number]} Range lowest x, highest x, lowest y, highest y
 * @typedef {'triangle' | 'grid' | 'strips' | 'map'} Kind
 *
 * @typedef {object} Component
 * @property {number} number what people see
 * @property {string} [name] what a person called it
 * @property {[string, number][]} [columns] of a table that weigh most, from -1 to 1
 * @property {number} [spread] standard deviation of a row's score, given its components
 *
 * @typedef {object} PanelMeta
 * @property {number[]} components indices into `meta.components`, ascending
 * @property {number[]} axes the components of x and y
 * @property {number} start of its listed rows in `order.*` @property {number} listed @property {number} count of all
 * @property {[number, number]} cell column and row @property {number} [size] of its card in a grid
 * @property {number[]} levels images that have room at a distance of spacing / 2 ** (k / 4) sides
 * @property {Limits} range scores shown
 *
 * @typedef {[[number, number], [number, number]]} Limits of x and y
 * @typedef {{kind: Kind, title: string, panels: PanelMeta[], spacing: number, limits?: Limits, other?: {start: number, count: number, subspaces: number}, drawn?: {rows: number, points: number, of: number}}} LayoutMeta
 *
 * @typedef {object} Colouring
 * @property {'category' | 'quantity' | 'plane'} kind of a plane: a square of colours for two components @property {string} [title]
 * @property {string[]} names of the classes; the code after the last is "missing"
 * @property {boolean} [steps] whether the classes are steps of a scale, which name no place
 * @property {string[]} table @property {string[]} [shapes] of the classes, where colours alone do not tell them apart @property {[number, number]} [limits] @property {number[]} [axes] of a plane
 *
 * @typedef {object} SheetMeta
 * @property {[number, number, number]} tile height, width, channels
 * @property {number} cell @property {number} columns @property {number} per_sheet @property {number} count
 * @property {'ink' | 'photo'} style
 *
 * @typedef {object} Meta
 * @property {1} format @property {number} rows
 * @property {Component[]} components @property {number} score_unit @property {number | null} n_active null where rows differ @property {number} [most_used] @property {boolean} [centred] false where scores are added to zero, not to the average
 * @property {Record<string, LayoutMeta>} layouts @property {Record<string, Colouring>} colourings
 * @property {SheetMeta} [sheets] @property {{cell: number, columns: number, tile: [number, number, number]}} [component_pictures] with those for a dark ground after the light ones
 * @property {{row?: string, rows?: string}} [words]
 * @property {Record<string, [string, number]>} [buffers] kind of number and length, by name
 * @property {{ids: string | null, lines: import('./scene/hover.js').Line[]} | null} [hover]
 * @property {string} [first] layout @property {number} doubt_below a row is drawn hollow, of 255
 *
 * @typedef {object} Input
 * @property {Meta} meta
 * @property {Record<string, () => Promise<ArrayBuffer>>} buffers
 * @property {{tile?: (sheet: number) => Promise<Blob>, components?: () => Promise<Blob>}} [sheets]
 * @property {Options} [options]
 *
 * @typedef {object} Options
 * @property {string} [layout] @property {string} [beside] the layout of a second view, '' for none
 * @property {string} [colouring] @property {'light' | 'dark'} [theme]
 * @property {boolean} [ghosts] @property {boolean} [images] @property {number} [dense] how much closer than usual images stand @property {Filter} [filter]
 * @property {'pan' | 'lasso' | 'box'} [tool] @property {number} [dpr]
 * @property {string[]} [panels] names of the only panels to show, without maps @property {boolean} [compact] without title, legend and tools
 * @property {string[]} [sought] components, as "0,3,4", of gathered subspaces that have a panel
 * @property {string[]} [came] by component "was 5" or "new" where it was not in the picture before
 * @property {number} [held] the row whose details are on the page, -1 for none @property {number[]} [near] the rows nearest to it
 * @property {{selections: [string, number][], columns: [string, string][]}} [offers] of the host: named selections with their rows, and what it can colour by, key and name
 *
 * @typedef {object} Filter
 * @property {number[]} [components] indices; a panel shows when it has all of them
 * @property {number[]} [classes] codes that are shown @property {number} [least] rows of a panel
 * @property {number} [certainty] 0..1
 *
 * @typedef {object} Callbacks
 * @property {(bits: Uint8Array, count: number) => void} [onSelect]
 * @property {(row: number) => void} [onPoint] a click holds a row, -1 lets go; without it a click selects the row
 * @property {(kind: 'selection' | 'colour' | 'class', name: string) => void} [onAct] show one of `offers`, or rename a class: label, old and new name as JSON
 * @property {() => import('./find/find.js').Act[]} [acts] what the host can do, for the palette
 * @property {(rows: number[]) => Promise<Float32Array>} [project] scores of rows on all components, for ghosts
 * @property {(rows: number[]) => Promise<string[][]>} [describe] lines of the hover card, by row, where the scene has none
 */
export {};
