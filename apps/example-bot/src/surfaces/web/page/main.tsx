import { render } from 'preact'
import { App } from './app.tsx'
import { headers } from './ask.ts'
import { follow } from './feed.ts'
import { link, take } from './state.ts'

render(<App />, document.body)

void follow({
  headers,
  onEvent: take,
  onState: (state, message) => {
    link.value = { state, ...(message === undefined ? {} : { message }) }
  },
})
