/** What the server sends, as types: only types cross from its side to this one. */

import type { Explanation } from '../../../ledger.ts'
import type { FeedSnapshot } from '../room-feed.ts'

export type { CallLine, Receipt } from '../../../receipt.ts'
export type { RoomFile } from '../../reply-files.ts'
export type { RoomChannel, RoomDraft, RoomEntry, RoomSpeaker } from '../../room.ts'
export type { DriverState } from '../room-feed.ts'

/** What JSON makes of a snapshot: an absent field stays absent. */
export type Snapshot = FeedSnapshot

/** Who pays, as `/api/key` tells it. */
export type Payer = { readonly [Key in keyof Explanation]: string | null } & { readonly problem?: string }
