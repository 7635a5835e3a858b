/** What to do when Discord closed the connection for good; `undefined` for a code that says nothing to an operator. */
export function closeText(code: number | undefined): string | undefined {
  return code === undefined ? undefined : TEXTS[code]
}

/** By close code of the gateway: authentication failed, disallowed intents. */
const TEXTS: Readonly<Record<number, string>> = {
  4004: 'Discord does not take this token. Make a new one in the developer portal: Bot, Reset Token.',
  4014: 'Discord refuses what the bot asks to hear. Turn on Message Content Intent in the developer portal: Bot, Privileged Gateway Intents.',
}
