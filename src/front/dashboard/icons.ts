/** The dashboard's icons: strokes on a 24 by 24 grid, in the text colour, hidden from screen readers. */
const paths: Record<string, string> = {
  overview: 'M4 20V11M10 20V4M16 20v-7M21 20H3',
  emails: 'M3 6.5h18v11.5H3zM3 7l9 6.5L21 7',
  statistics: 'M4 6h16M4 12h11M4 18h6',
  inbox: 'M3 13l3-8h12l3 8v6H3zM3 13h5l1.5 3h5l1.5-3h5',
  domains: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  suppressions: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M6 6l12 12',
  webhooks: 'M13 3L5 14h6l-1 7 8-11h-6z',
  credits:
    'M12 4c4.5 0 8 1.3 8 3s-3.5 3-8 3-8-1.3-8-3 3.5-3 8-3M4 7v5c0 1.7 3.5 3 8 3s8-1.3 8-3V7M4 12v5c0 1.7 3.5 3 8 3s8-1.3 8-3v-5',
  team: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M3 20c0-3.5 2.5-6 6-6s6 2.5 6 6M16 11a3 3 0 1 0 0-6M17.5 14.5c2.2.6 3.5 2.8 3.5 5.5',
  keys: 'M8 12a4 4 0 1 0 0 8 4 4 0 0 0 0-8M11 13l9-9M17 7l3 3M14 10l2.5 2.5',
  queue: 'M4 6h16M4 12h16M4 18h10',
  doctor: 'M3 12h4l2.5-6 4 12L16 12h5',
  organizations: 'M4 21V5h9v16M13 10h7v11M2.5 21h19M7 9h3M7 13h3M7 17h3M16.5 14h.5M16.5 17.5h.5',
  received: 'M3 6.5h18v11.5H3zM12 3v9M8.5 8.5L12 12l3.5-3.5',
  routes: 'M4 12h6M10 12l8-6M10 12l8 6M14.5 5.5H18.5V9M14.5 18.5h4V15',
  streams: 'M3 7c3-2.5 6 2.5 9 0s6 2.5 9 0M3 12.5c3-2.5 6 2.5 9 0s6 2.5 9 0M3 18c3-2.5 6 2.5 9 0s6 2.5 9 0',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  check: 'M5 12.5l4.5 4.5L19 7',
  cross: 'M6 6l12 12M18 6L6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  down: 'M6 9.5l6 6 6-6',
  next: 'M9 5l7 7-7 7',
  theme: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  leave: 'M10 4H5v16h5M15 8l4 4-4 4M19 12H9',
  warning: 'M12 4L2.5 20h19zM12 10v4.5M12 17.3v.2',
  send: 'M3.5 11.5L20.5 4l-6 16.5-3.5-7zM11 13.5L20.5 4',
  clip: 'M18 11l-6.5 6.5a3.9 3.9 0 0 1-5.5-5.5L13.5 4.5a2.6 2.6 0 0 1 3.7 3.7l-7.3 7.3a1.3 1.3 0 0 1-1.9-1.9L14.5 7',
  download: 'M12 4v11M7.5 11l4.5 4.5 4.5-4.5M4.5 19.5h15',
  search: 'M11 4.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M16 16l4.5 4.5',
};

/** Returns HTML that needs no escaping. */
export function icon(name: string): string {
  const path = paths[name];
  if (path === undefined) throw new Error(`there is no icon ${name}`);
  return `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${path}"/></svg>`;
}
