/**
 * Draws the elements with `data-chart` by uPlot: stacked bars of delivered, waiting and bounced. A bar is selected with the pointer or the
 * arrow keys and announced to screen readers. Colours follow the page's theme.
 */
const numbers = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: 'compact' });
const series = [
  { name: 'Delivered', colour: '--key-delivered' },
  { name: 'Waiting', colour: '--key-waiting' },
  { name: 'Bounced', colour: '--key-bounced' },
];
/** Steps of the count axis: no fractions. */
const increments = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((each) => each * 10 ** power),
).flat();
const charts = new Set();

/** Browsers resolve light-dark() only where it is used, so the colour is read from an element. */
function colourOf(element, name) {
  const probe = createElement('i');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function periodOf(from, step) {
  const begin = new Date(from * 1000);
  const end = new Date((from + step) * 1000);
  const options = { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' };
  return new Intl.DateTimeFormat(undefined, options).formatRange(begin, end);
}

/** Labels of the time axis: days, or hours with the day below the first hour of each day. */
function timeLabels(splits, increment) {
  const days = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
  const hours = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
  const dayOf = (split) => days.format(split * 1000);
  if (increment >= 86_400) return splits.map(dayOf);
  return splits.map((split, index) => {
    const isNewDay = index === 0 || dayOf(splits[index - 1]) !== dayOf(split);
    return hours.format(split * 1000) + (isNewDay ? `\n${dayOf(split)}` : '');
  });
}

function axesOf(colour) {
  const axis = {
    stroke: colour('--quiet'),
    font: '12px system-ui, sans-serif',
    ticks: { show: false },
    border: { show: false },
  };
  const times = {
    ...axis,
    grid: { show: false },
    space: 70,
    values: (_chart, splits, _axis, _space, increment) => timeLabels(splits, increment),
  };
  const counts = {
    ...axis,
    incrs: increments,
    size: 46,
    grid: { stroke: colour('--line'), width: 1 },
    values: (_chart, splits) => splits.map((split) => short.format(split)),
  };
  return [times, counts];
}

function createChart(element, { step, bars }, onSelect) {
  const colour = (name) => () => colourOf(element, name);
  const paths = uPlot.paths.bars({ size: [0.72, 44], radius: 0.12 });
  const options = {
    width: element.clientWidth,
    height: element.clientHeight,
    padding: [12, 16, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { range: () => [bars[0][0], bars.at(-1)[0] + step] },
      y: { range: (_chart, _min, max) => [0, Math.max(max * 1.08, 4)] },
    },
    axes: axesOf(colour),
    series: [
      {},
      // The whole bar first, so that each shorter one covers its lower part.
      ...series.toReversed().map(({ name, colour: variable }) => ({
        label: name,
        fill: colour(variable),
        width: 0,
        paths,
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onSelect(cursor.idx ?? null)] },
  };
  const times = bars.map(([from]) => from + step / 2);
  const heightUpTo = (bar, top) => bar.slice(1, top + 2).reduce((sum, count) => sum + count);
  const heights = series.map((_, index) => bars.map((bar) => heightUpTo(bar, index)));
  return new uPlot(options, [times, ...heights.toReversed()], element);
}

function createElement(tag, ...content) {
  const element = document.createElement(tag);
  element.append(...content);
  return element;
}

function fillTooltip(tip, [from, ...counts], step) {
  const items = series.map(({ name }, index) =>
    createElement('li', createElement('span', name), createElement('strong', numbers.format(counts[index]))),
  );
  tip.replaceChildren(createElement('p', periodOf(from, step)), createElement('ul', ...items));
}

/** To the right of the bar, or to the left if it would not fit. */
function placeTooltip(tip, element, middle) {
  const isRight = middle + 14 + tip.offsetWidth <= element.clientWidth;
  const left = isRight ? middle + 14 : middle - 14 - tip.offsetWidth;
  tip.style.left = `${Math.max(0, left)}px`;
}

function announce([from, ...counts], step) {
  const figures = series.map(({ name }, index) => `${name} ${numbers.format(counts[index])}`).join(', ');
  document.getElementById('announcer').textContent = `${periodOf(from, step)}: ${figures}`;
}

function draw(element) {
  const data = JSON.parse(element.dataset.chart);
  const { step, bars } = data;
  const last = bars.length - 1;
  let selected = null;
  const tip = createElement('div');
  tip.className = 'chart-tip';
  tip.hidden = true;
  const chart = createChart(element, data, select);
  element.append(tip);
  charts.add(chart);

  function select(index) {
    selected = index;
    tip.hidden = index === null;
    if (index === null) return;
    fillTooltip(tip, bars[index], step);
    const middle = chart.bbox.left / devicePixelRatio + chart.valToPos(bars[index][0] + step / 2, 'x');
    placeTooltip(tip, element, middle);
  }

  const targets = {
    ArrowLeft: () => Math.max((selected ?? last + 1) - 1, 0),
    ArrowRight: () => Math.min((selected ?? -1) + 1, last),
    Home: () => 0,
    End: () => last,
  };
  const deselect = () => chart.setCursor({ left: -10, top: -10 });
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') deselect();
    const target = targets[event.key];
    if (!target) return;
    event.preventDefault();
    const bar = bars[target()];
    chart.setCursor({ left: chart.valToPos(bar[0] + step / 2, 'x'), top: 10 });
    announce(bar, step);
  });
  element.addEventListener('blur', deselect);
  new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = element;
    if (width > 0 && (width !== chart.width || height !== chart.height)) chart.setSize({ width, height });
  }).observe(element);
}

function drawAll(within) {
  for (const chart of charts) {
    if (chart.root.isConnected) continue;
    chart.destroy();
    charts.delete(chart);
  }
  for (const element of within.querySelectorAll('[data-chart]')) if (!element.firstChild) draw(element);
}

drawAll(document);
document.addEventListener('htmx:load', (event) => drawAll(event.detail.elt));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const chart of charts) chart.redraw();
});

/** Does not replace a part that the reader is using. */
document.addEventListener('htmx:beforeRequest', (event) => {
  const element = event.target;
  if (!element.matches('[data-still]')) return;
  const isInUse =
    element.contains(document.activeElement) || element.querySelector('.chart:hover, details[open]') !== null;
  if (document.hidden || isInUse) event.preventDefault();
});
