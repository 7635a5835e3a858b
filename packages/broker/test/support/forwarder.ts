export { type Forwarder, openForwarder } from '@sandbox/testing'
