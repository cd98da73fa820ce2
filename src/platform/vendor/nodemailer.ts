/**
 * nodemailer's functions for header values: encoded words (RFC 2047), parameters (RFC 2231) and folding, read in version
 * 10.6.0, which package.json pins. They are exported but not documented. The public way to them is nodemailer's
 * composer, which mail/compose/mime.ts does not use because of its cost.
 */
export {
  buildHeaderValue,
  detectExtension,
  detectMimeType,
  encodeWord,
  encodeWords,
  foldLines,
  parseHeaderValue,
  quoteString,
} from 'nodemailer/lib/mime-funcs';
