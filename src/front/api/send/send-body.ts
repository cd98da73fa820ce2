/** The limits of the bodies of a send and of a batch. The schema names the errors of what they let through, long texts too. */
import { jsonBody, largestBody } from '#front/http/body-limits.ts';

/** Elements of a batch. */
export const maxElements = 100;

/** A valid send has at most 1,000 attachments with six members each. */
const members = 10_000;

export const sendBody = jsonBody({ largest: largestBody, members, text: largestBody });

const largestBatch = 50 * 1024 * 1024;

/** `members`: of each element. */
export const batchBody = jsonBody({ largest: largestBatch, members, text: largestBatch });
