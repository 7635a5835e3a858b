/** What `--help` prints. */
export const USAGE = `A chat bot whose agent runs in a sealed container, paid for by the key of its channel and speaker.

To try it, with a stand-in for the model service:

  demo [--json] [--driver docker|process] [--image NAME] [--port N] [--state DIR]
                           starts a stand-in model service and the bot, prints the address of its page
  demo --check [--json] [--driver docker|process] [--image NAME]
                           plays a script without a person and prints a row a turn

To run it:

  bot init [--dir DIR] [--state DIR] [--provider openai|anthropic|stand-in] [--url URL] [--model NAME] [--mode sealed|pi]
           [--key env:NAME|file:PATH|command:PROGRAM] [--owner DISCORD_ID] [--port N] [--yes]
                           asks what it must know, and writes a configuration; never over one
  bot doctor [--config FILE] [--call] [--json]
                           tries everything that the bot needs, and says how to mend what fails;
                           --call also spends one token at each provider
  bot --config FILE [--json]
                           runs the bot of a configuration

Keys, of the demo (--state) or of a configuration (--config); neither command prints a key:

  bot keys check [--config FILE | --state DIR]
                           reads the key file as the bot does and says what is wrong
  bot keys explain --channel KEY [--speaker ID] [--config FILE | --state DIR]
                           says which rule chooses a key

  --driver    docker: containers, or nothing. process: a plain child process, which is NO sandbox.
              Left out: docker when an engine answers.
  --image     an image to use as it is; left out, one is built from this machine's files, without a registry
  --json      for scripts: messages are read from stdin, a line each, and what happens is told on stdout, a line of
              JSON each; ends when the input has ended and everything is answered
  --port      of the page, on 127.0.0.1; left out, any free port
  --state     a private directory for keys, sockets and workspaces; left out, /tmp/sandbox-demo-<uid>
  --config    left out by doctor: bot.jsonc in this directory

Environment: SANDBOX_DOCKER_SOCKET or DOCKER_HOST name the engine's Unix socket; NO_COLOR turns colours off.
Exit codes: 0 done, 1 failed and the message says what to do, 2 wrong usage.
`
