/**
 * Draws `data-chart` by uPlot: bars of what was sent, delivered and bounced. One bar can be chosen by pointing or by the
 * arrow keys, and is told to screen readers. Colours are the page's, whatever the theme turns to.
 */
(() => {
  const numbers = new Intl.NumberFormat();
  const short = new Intl.NumberFormat(undefined, { notation: 'compact' });
  const series = [
    { name: 'Sent', colour: '--key-sent' },
    { name: 'Delivered', colour: '--key-delivered' },
    { name: 'Bounced', colour: '--key-bounced' },
  ];
  const increments = Array.from({ length: 10 }, (_, power) =>
    [1, 2, 5].map((each) => each * 10 ** power),
  ).flat();
  const charts = new Set();

  /** light-dark() is only resolved in the place where it is used. */
  function colourOf(element, name) {
    const probe = document.createElement('i');
    probe.style.color = `var(${name})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  }

  function timeOf(from, step) {
    const begin = new Date(from * 1000);
    const end = new Date((from + step) * 1000);
    const options = { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' };
    return new Intl.DateTimeFormat(undefined, options).formatRange(begin, end);
  }

  /** Days, or hours with the day where a new one begins. */
  function momentsOf(splits, increment) {
    const days = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
    const hours = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
    const dayOf = (split) => days.format(split * 1000);
    if (increment >= 86_400) return splits.map(dayOf);
    return splits.map((split, index) => {
      const isNew = index === 0 || dayOf(splits[index - 1]) !== dayOf(split);
      return hours.format(split * 1000) + (isNew ? `\n${dayOf(split)}` : '');
    });
  }

  function draw(element) {
    const { step, bars } = JSON.parse(element.dataset.chart);
    const last = bars.length - 1;
    const colour = (name) => () => colourOf(element, name);
    const barPaths = uPlot.paths.bars({ size: [0.72, 44], radius: 0.12 });
    const axis = {
      stroke: colour('--quiet'),
      font: '12px system-ui, sans-serif',
      ticks: { show: false },
      border: { show: false },
    };
    const tip = document.createElement('div');
    tip.className = 'chart-tip';
    tip.hidden = true;
    let chosen = null;

    const chart = new uPlot(
      {
        width: element.clientWidth,
        height: element.clientHeight,
        padding: [12, 16, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: {
          x: { range: () => [bars[0][0], bars[last][0] + step] },
          y: { range: (_chart, _least, most) => [0, Math.max(most * 1.08, 4)] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            space: 70,
            values: (_chart, splits, _axis, _space, increment) => momentsOf(splits, increment),
          },
          {
            ...axis,
            incrs: increments,
            size: 46,
            grid: { stroke: colour('--line'), width: 1 },
            values: (_chart, splits) => splits.map((split) => short.format(split)),
          },
        ],
        series: [
          {},
          ...series.map(({ name, colour: of }) => ({
            label: name,
            fill: colour(of),
            width: 0,
            paths: barPaths,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [({ cursor }) => choose(cursor.idx ?? null)] },
      },
      [bars.map(([from]) => from + step / 2), ...series.map((_, index) => bars.map((bar) => bar[index + 1]))],
      element,
    );
    element.append(tip);
    charts.add(chart);

    function choose(index) {
      chosen = index;
      tip.hidden = index === null;
      if (index === null) return;
      const [from, ...counts] = bars[index];
      const head = document.createElement('p');
      head.textContent = timeOf(from, step);
      const list = document.createElement('ul');
      for (const [at, { name }] of series.entries()) {
        const item = document.createElement('li');
        const [what, count] = [document.createElement('span'), document.createElement('strong')];
        what.textContent = name;
        count.textContent = numbers.format(counts[at]);
        item.append(what, count);
        list.append(item);
      }
      tip.replaceChildren(head, list);
      const middle = chart.bbox.left / devicePixelRatio + chart.valToPos(from + step / 2, 'x');
      const left =
        middle + 14 + tip.offsetWidth > element.clientWidth ? middle - 14 - tip.offsetWidth : middle + 14;
      tip.style.left = `${Math.max(0, left)}px`;
    }

    function goTo(index) {
      chart.setCursor({ left: chart.valToPos(bars[index][0] + step / 2, 'x'), top: 10 });
      const [from, ...counts] = bars[index];
      const told = series.map(({ name }, at) => `${name} ${numbers.format(counts[at])}`).join(', ');
      document.getElementById('announcer').textContent = `${timeOf(from, step)}: ${told}`;
    }

    const moves = {
      ArrowLeft: () => Math.max((chosen ?? last + 1) - 1, 0),
      ArrowRight: () => Math.min((chosen ?? -1) + 1, last),
      Home: () => 0,
      End: () => last,
    };
    const leave = () => chart.setCursor({ left: -10, top: -10 });
    element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') leave();
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      goTo(move());
    });
    element.addEventListener('blur', leave);
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
    for (const time of within.querySelectorAll('time[data-local]'))
      time.textContent = new Date(time.dateTime).toLocaleString(undefined, {
        ...{ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
      });
  }

  drawAll(document);
  document.addEventListener('htmx:load', (event) => drawAll(event.detail.elt));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const chart of charts) chart.redraw();
  });

  /** Nothing is replaced under somebody's hands or eyes. */
  document.addEventListener('htmx:beforeRequest', (event) => {
    const element = event.target;
    if (!element.matches('[data-still]')) return;
    const isInUse =
      element.contains(document.activeElement) ||
      element.querySelector('.chart:hover, details[open]') !== null;
    if (document.hidden || isInUse) event.preventDefault();
  });
})();
