/** In pixels; the style sheet has the same. */
export const ROW_HEIGHT = 24;
export const HEAD_HEIGHT = 42;
