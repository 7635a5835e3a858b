/** Talks to the server, with the token of this start. */

const KEPT = 'token'

/** The token comes after the # of the address and is kept for this tab only. */
function takeToken(): string {
  if (holdsToken()) {
    sessionStorage.setItem(KEPT, location.hash.slice(1))
    history.replaceState(undefined, '', location.pathname)
  }
  return sessionStorage.getItem(KEPT) ?? ''
}

/** True for the address that the bot printed, and false for that of a place on the page. */
function holdsToken(): boolean {
  return location.hash.length > 20
}

// The address of a bot that was started again, opened in this tab, changes the part after the # only.
addEventListener('hashchange', () => {
  if (holdsToken()) location.reload()
})

/** Goes with every request to `/api/`. */
export const headers: Readonly<Record<string, string>> = { 'x-demo-token': takeToken() }

/** Asks, or with a body tells, and returns the answer. Rejects with words for a person. */
export async function ask<Answer>(path: string, body?: object): Promise<Answer> {
  const response = await send(path, body)
  return (await response.json()) as Answer
}

/** Fetches a file of a reply and hands it to the browser to save. */
export async function saveFile({ id, name }: { id: string; name: string }): Promise<void> {
  const response = await send(`/api/files/${encodeURIComponent(id)}`)
  save(await response.blob(), name)
}

/** Hands something to the browser to save under a name. */
export function save(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

async function send(path: string, body?: object): Promise<Response> {
  let response: Response
  try {
    response = await fetch(path, {
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
  } catch (cause) {
    throw new TypeError('The bot cannot be reached.', { cause })
  }
  if (response.ok) return response
  const answer = (await response.json().catch(() => ({}))) as { error?: { message?: string } }
  throw new TypeError(answer.error?.message ?? 'The bot refused.')
}
