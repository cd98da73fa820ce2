/** The files of a sent email, read from its message. Runs on a thread of its own. */
import { readTree } from '#mail/compose/mime-tree.ts';
import { bodyOf, contentIdOf, shownParts } from '#mail/compose/shown-parts.ts';

export interface SentFile {
  /** Its position in the message. */
  id: string;
  filename: string | null;
  type: string;
  isInline: boolean;
  contentId: string | null;
  size: number;
  content: Buffer | null;
}

/** Null if the message cannot be read. */
export function filesOf(raw: Buffer, wanted: string | null): SentFile[] | null {
  const tree = readTree(raw);
  if (!tree) return null;
  return shownParts(tree).attached.map((part, index) => {
    const content = bodyOf(raw, part);
    return {
      id: String(index),
      filename: part.filename,
      type: part.type,
      isInline: part.isInline,
      contentId: contentIdOf(part),
      size: content.length,
      content: String(index) === wanted ? content : null,
    };
  });
}
