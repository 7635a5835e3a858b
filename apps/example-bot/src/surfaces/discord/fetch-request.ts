import type { RESTOptions } from 'discord.js'

/**
 * The library's requests by the runtime's own fetch, on every runtime. By itself it takes an undici of its own, which
 * goes through the agent of whatever undici was loaded last, and that one does not know the runtime's form data.
 */
export const fetchRequest: RESTOptions['makeRequest'] = async (url, init) => {
  try {
    // The same interface by another package's types.
    return await fetch(url, init as unknown as RequestInit)
  } catch (error) {
    // The library looks at the code of a network error to try again; fetch hides it in the cause.
    throw error instanceof TypeError && error.cause instanceof Error ? error.cause : error
  }
}
