import { randomUUID } from 'node:crypto'
import { type OutboundReply, type ReplyFile, splitReply } from '@sandbox/roundtable-plugin'
import { MessageFlags, type RequestData } from 'discord.js'

/** What Discord takes in one message: files, bytes of one file, bytes of all of them with what surrounds them. */
const FILES = 10
const FILE_BYTES = 10 * 2 ** 20
const FILES_BYTES = 24 * 2 ** 20

/** The requests that post a reply, in order: its chunks, its files, and a word about files that cannot be posted. */
export function replyPosts({ chunks, files = [] }: OutboundReply): RequestData[] {
  const { groups, tooLarge } = groupFiles(files)
  return [
    ...chunks.flatMap((chunk) => splitReply(chunk)).map((content) => ({ body: bodyOf(content) })),
    ...groups.map((group) => ({ body: bodyOf(), files: group })),
    ...(tooLarge === 0 ? [] : [{ body: bodyOf(tooLargeText(tooLarge)) }]),
  ]
}

/**
 * Nobody is pinged, whatever an agent was made to write. Links are not unfolded: Discord would call an address for it,
 * with whatever the agent wrote into it. The nonce lets Discord know a request that the library sends once more.
 */
function bodyOf(content?: string): object {
  return {
    ...(content !== undefined && { content }),
    allowed_mentions: { parse: [] },
    flags: MessageFlags.SuppressEmbeds,
    nonce: randomUUID().replaceAll('-', '').slice(0, 25),
    enforce_nonce: true,
  }
}

function groupFiles(files: readonly ReplyFile[]): { groups: ReplyFile[][]; tooLarge: number } {
  const groups: ReplyFile[][] = []
  const fitting = files.filter(({ data }) => data.length <= FILE_BYTES)
  let bytes = 0
  for (const file of fitting) {
    const group = groups.at(-1)
    if (group === undefined || group.length === FILES || bytes + file.data.length > FILES_BYTES) {
      groups.push([file])
      bytes = file.data.length
    } else {
      group.push(file)
      bytes += file.data.length
    }
  }
  return { groups, tooLarge: files.length - fitting.length }
}

function tooLargeText(count: number): string {
  return count === 1
    ? '(One file is too large for Discord and was left out.)'
    : `(${count} files are too large for Discord and were left out.)`
}
