/** The headings of a Markdown text, with the anchors that GitHub gives them. */

interface Heading {
  level: number;
  title: string;
  anchor: string;
}

export function headingsOf(markdown: string): Heading[] {
  const counts = new Map<string, number>();
  const text = markdown.replace(/^```.*?^```/gms, '');
  return [...text.matchAll(/^(#+) (.+)$/gm)].map(([, marks, title]) => {
    const slug = title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const earlier = counts.get(slug) ?? 0;
    counts.set(slug, earlier + 1);
    return { level: marks!.length, title: title!, anchor: earlier === 0 ? slug : `${slug}-${earlier}` };
  });
}
