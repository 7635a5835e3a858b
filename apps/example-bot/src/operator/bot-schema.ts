import Type from 'typebox'

/**
 * The operator's configuration file, as one schema: it checks the file, it types what was read, and as
 * `bot.schema.json` it helps an editor. What it cannot say is checked in `read-bot-file.ts`.
 */

const about = (description: string) => ({ description })
const exact = (description: string) => ({ description, additionalProperties: false })
const REFERENCE = '^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\\u0000]+)$'

const Provider = Type.Object(
  {
    api: Type.Enum(
      ['openai', 'anthropic'],
      about('openai: Chat Completions, which many services speak. anthropic: the Messages API.'),
    ),
    url: Type.String({
      ...about(
        'Base URL, such as https://api.openai.com/v1 or https://api.anthropic.com. http: on loopback only.',
      ),
      pattern: '^https?://[^?#\\s]+$',
    }),
    model: Type.String({ ...about('The model, as the service names it.'), minLength: 1, maxLength: 256 }),
    auth: Type.Optional(
      Type.String({
        ...about(
          'Where the key goes: "bearer", or the name of a header such as "x-api-key". Left out, as the API has it.',
        ),
        pattern: '^(bearer|x-[a-z-]{1,64}|api-key)$',
      }),
    ),
    tokenLimitField: Type.Optional(
      Type.Enum(
        ['max_tokens', 'max_completion_tokens'],
        about('How the service calls the limit of output tokens in Chat Completions. Left out: max_tokens.'),
      ),
    ),
    stream: Type.Optional(
      Type.Boolean(
        about('False: the service cannot stream Chat Completions; Pi mode then waits for whole answers.'),
      ),
    ),
    allowHttp: Type.Optional(Type.Boolean(about('Admits http: for a service on this machine.'))),
  },
  exact('A model service.'),
)

const Speaker = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 100 }), name: Type.String({ minLength: 1, maxLength: 100 }) },
  exact('Who may speak in a channel of the page.'),
)

const Channel = Type.Object(
  {
    mode: Type.Enum(
      ['sealed', 'pi'],
      about('sealed: a fresh container for each message. pi: a lasting one with the Pi coding agent.'),
    ),
    provider: Type.Optional(
      Type.String(
        about(
          'Who answers where the rule of the key names no provider. Left out: the first that fits the mode.',
        ),
      ),
    ),
    model: Type.Optional(
      Type.String({ ...about('Instead of the provider’s model.'), minLength: 1, maxLength: 256 }),
    ),
    on: Type.Optional(
      Type.Boolean(about('False: off until the owner turns it on. Left out: on. Not for patterns.')),
    ),
    title: Type.Optional(Type.String({ ...about('Its name on the page.'), minLength: 1, maxLength: 60 })),
    about: Type.Optional(
      Type.String({ ...about('One sentence for a newcomer, on the page.'), maxLength: 200 }),
    ),
    speakers: Type.Optional(Type.Array(Speaker, about('For channels of the page: who may speak there.'))),
  },
  exact('How a channel is answered.'),
)

const Port = Type.Integer({ minimum: 0, maximum: 65_535, ...about('0 is any free one.') })
const Address = Type.String({
  ...about('IP address to listen on. Left out: 127.0.0.1.'),
  pattern: '^[0-9a-fA-F.:]+$',
})

const Surfaces = Type.Object(
  {
    web: Type.Optional(
      Type.Object(
        {
          port: Port,
          listenOn: Type.Optional(Address),
          hostNames: Type.Optional(
            Type.Array(Type.String(), about('Names that the page answers to, beside loopback.')),
          ),
          token: Type.Optional(
            Type.String({
              ...about(
                'env:NAME or file:PATH with at least 32 characters. Left out: a new one at every start.',
              ),
              pattern: REFERENCE,
            }),
          ),
        },
        exact('The page.'),
      ),
    ),
    terminal: Type.Optional(
      Type.Boolean(about('The channels of the page in the terminal, when a person sits there.')),
    ),
    discord: Type.Optional(
      Type.Object(
        {
          token: Type.String({
            ...about('env:NAME or file:PATH; never the token itself.'),
            pattern: REFERENCE,
          }),
          ownerId: Type.String({
            ...about('Your user id: who may use the slash commands.'),
            pattern: '^[0-9]{1,20}$',
          }),
          api: Type.Optional(
            Type.String({
              ...about(
                'Address of the REST API, for a proxy in front of it. Left out: https://discord.com/api',
              ),
              pattern: '^https?://[^/]+(/.*[^/])?$',
            }),
          ),
        },
        exact('Discord.'),
      ),
    ),
  },
  exact('Where people reach the bot.'),
)

const Workers = Type.Object(
  {
    driver: Type.Optional(
      Type.Enum(
        ['docker', 'process'],
        about('docker: containers, or nothing. process: NO sandbox. Left out: docker.'),
      ),
    ),
    engineSocket: Type.Optional(Type.String(about('Path of the engine’s Unix socket.'))),
    image: Type.Optional(Type.String(about('An image for sealed workers. Left out: one is built.'))),
    piImage: Type.Optional(Type.String(about('An image for Pi workers. Left out: one is built.'))),
    piContent: Type.Optional(
      Type.String(about('Folder with your prompts, skills and tools, for the Pi image that is built.')),
    ),
    memoryBytes: Type.Optional(Type.Integer({ minimum: 1 })),
    cpus: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    pids: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  exact('Where workers run, and what one may use.'),
)

const Limits = Type.Object(
  {
    turnTimeoutMs: Type.Optional(
      Type.Integer({ minimum: 1_000, maximum: 600_000, ...about('Longest turn.') }),
    ),
    maxCalls: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, ...about('Calls of one turn.') })),
    maxOutputTokens: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200_000, ...about('Of one model call.') }),
    ),
    workspaceBytes: Type.Optional(Type.Integer({ minimum: 1_048_576, ...about('Disk of a channel.') })),
    perSpeakerMinute: Type.Optional(Type.Integer({ minimum: 1, ...about('Messages that are taken.') })),
    perChannelMinute: Type.Optional(Type.Integer({ minimum: 1, ...about('Messages that are taken.') })),
  },
  exact('Left out, each is as the packages have it.'),
)

const Audit = Type.Object(
  {
    path: Type.String(about('Of the file; relative to this one. Older ones lie beside it.')),
    maxBytes: Type.Optional(
      Type.Integer({ minimum: 4_096, ...about('Then a new file begins. Left out: 10 MiB.') }),
    ),
    keep: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000, ...about('Older files that are kept. Left out: 10.') }),
    ),
    content: Type.Optional(Type.Boolean(about('True: what was said is written too. Keys never are.'))),
  },
  exact('A line for each turn: who, where, which rule, which key, tokens, outcome.'),
)

/** The whole file. */
export const BotFileSchema = Type.Object(
  {
    $schema: Type.Optional(Type.String(about('Path of this schema, for editors.'))),
    stateDir: Type.String(
      about('Private directory for sockets, workspaces and state; relative to this file.'),
    ),
    keys: Type.String(about('Path of the key file; relative to this file.')),
    providers: Type.Optional(
      Type.Record(
        Type.String(),
        Provider,
        about('Model services by name. Left out: a stand-in without intelligence.'),
      ),
    ),
    channels: Type.Record(
      Type.String(),
      Channel,
      about('By channel key, or its beginning and a *, as in discord:*. room: is the page and the terminal.'),
    ),
    surfaces: Surfaces,
    workers: Type.Optional(Workers),
    limits: Type.Optional(Limits),
    prices: Type.Optional(
      Type.String(about('Path of a price list; relative to this file. Costs are shown by it.')),
    ),
    log: Type.Optional(Type.Enum(['text', 'json'], about('json: one object per line. Left out: text.'))),
    monitor: Type.Optional(
      Type.Object({ port: Port, listenOn: Type.Optional(Address) }, exact('/healthz and /metrics.')),
    ),
    audit: Type.Optional(Audit),
  },
  { title: 'Configuration of the bot', description: 'Comments are allowed.', additionalProperties: false },
)

/** What stands in the file. */
export type BotFile = Type.Static<typeof BotFileSchema>
/** A model service, as the file has it. */
export type ProviderSettings = Type.Static<typeof Provider>
/** A channel or a pattern of channels, as the file has it. */
export type ChannelSettings = Type.Static<typeof Channel>
