export { atOnce, inPieces, type Pieces } from '@sandbox/protocol'

/** How much text is worked on between two looks at the clock. */
export const PIECE_BYTES = 64 * 1024
