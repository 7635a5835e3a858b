const colours = new Map<string, number>()

/** A key's fingerprint; every key of this page has a colour of its own, as long as there are enough. */
export function KeyChip({ fingerprint }: { fingerprint: string }) {
  if (!colours.has(fingerprint)) colours.set(fingerprint, colours.size % 6)
  return (
    <span
      class={`key tone-${colours.get(fingerprint)}`}
      title="Fingerprint of the key; it means nothing elsewhere"
    >
      {fingerprint.slice(0, 8)}
    </span>
  )
}
