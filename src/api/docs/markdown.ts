/** Renders the Markdown that the document uses: paragraphs, tables and `code`. Headings divide it into sections. */
import { type Html, html } from './html.ts';

export interface Section {
  /** Null for the text before the first heading. */
  title: string | null;
  body: Html;
}

export function sections(text: string): Section[] {
  return text.split(/^## /m).map((part, index) => {
    if (index === 0) return { title: null, body: blocks(part) };
    const end = part.indexOf('\n');
    return { title: part.slice(0, end), body: blocks(part.slice(end)) };
  });
}

export function blocks(text: string): Html {
  const found = text.split(/\n{2,}/).filter((block) => block.trim() !== '');
  return html`${found.map((block) => (block.trim().startsWith('|') ? table(block) : html`<p>${inline(block.trim())}</p>\n`))}`;
}

function table(block: string): Html {
  const [head, , ...rows] = block.trim().split('\n').map(cells);
  return html`<div class="scroll"><table>
<thead><tr>${head!.map((cell) => html`<th>${inline(cell)}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>\n`)}</tbody>
</table></div>
`;
}

function cells(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
}

/** Renders text between backticks as code. */
export function inline(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}
