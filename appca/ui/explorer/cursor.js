/**
 * The cursor: the keyboard's way from point to point of a panel. Only points in view count.
 */

const DIRECTIONS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
const LEAST = 0.5; // pixels a step must go: points on one spot are left to `neighbourInOrder`
const ASIDE = 2; // what a pixel to the side costs beside one in the direction

/** Places of the points in view. */
export function placesInView({ x, y, frame }) {
  const places = [];
  for (let place = 0; place < x.length; place += 1) {
    const within = x[place] >= frame.x[0] && x[place] <= frame.x[1];
    if (within && y[place] >= frame.y[0] && y[place] <= frame.y[1]) places.push(place);
  }
  return places;
}

/** The point nearest to the middle of the view, where a walk begins; -1 without points. */
export function middlePlace(panel) {
  const { frame } = panel;
  const middle = [(frame.x[0] + frame.x[1]) / 2, (frame.y[0] + frame.y[1]) / 2];
  return leastOf(placesInView(panel), (place) =>
    Math.hypot(...offset(panel, middle, [panel.x[place], panel.y[place]])),
  );
}

/**
 * The nearest point in the quarter of the plane that an arrow key points to; -1 when there is none.
 *
 * @param {{x: Float32Array, y: Float32Array, frame: Object}} panel
 * @param {number} from place of the point to start from
 * @param {string} key 'ArrowLeft', 'ArrowRight', 'ArrowUp' or 'ArrowDown'
 */
export function nearestInDirection(panel, from, key) {
  const [right, down] = DIRECTIONS[key];
  const start = [panel.x[from], panel.y[from]];
  return leastOf(placesInView(panel), (place) => {
    const [across, below] = offset(panel, start, [panel.x[place], panel.y[place]]);
    const ahead = across * right + below * down;
    const aside = Math.abs(across * down) + Math.abs(below * right);
    return ahead >= LEAST && aside <= ahead ? ahead + ASIDE * aside : Infinity;
  });
}

/**
 * The next point from left to right, the first after the last: reaches each point in view.
 *
 * @param {number} from place of the point to start from
 * @param {number} step 1 or -1
 */
export function neighbourInOrder(panel, from, step) {
  const places = placesInView(panel).sort((a, b) => panel.x[a] - panel.x[b] || a - b);
  if (!places.length) return -1;
  const now = places.indexOf(from);
  if (now < 0) return places[step > 0 ? 0 : places.length - 1];
  return places[(now + step + places.length) % places.length];
}

export function isArrow(key) {
  return key in DIRECTIONS;
}

/** From one place of the data to another in pixels: to the right and down. */
function offset({ frame }, [x, y], [toX, toY]) {
  return [
    ((toX - x) / (frame.x[1] - frame.x[0])) * frame.width,
    ((y - toY) / (frame.y[1] - frame.y[0])) * frame.height,
  ];
}

/** The place of least cost, the first among equals; -1 when none has a finite cost. */
function leastOf(places, costOf) {
  let best = -1;
  let least = Infinity;
  for (const place of places) {
    const cost = costOf(place);
    if (cost < least) {
      least = cost;
      best = place;
    }
  }
  return best;
}
