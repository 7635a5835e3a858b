// The peer in a process of its own; it reads `--port=` from its arguments.
import '@portkey-ai/gateway/build/start-server.js'
