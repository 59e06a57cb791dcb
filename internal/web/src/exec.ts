import { ask, Away, Failure } from './http'

// The types of a stream's messages, as the API describes them: a byte before the data.
const start = 1
const input = 2
const resize = 4
const output = 5
const window = 8
const exit = 9
const failed = 10

const ahead = 256 << 10 // bytes of input that may be on their way
const piece = 32 << 10 // bytes of input in one message

// End is how a shell ended: with its exit code, or why there is none.
export interface End {
  code?: number
  why?: string
}

// Heard is what becomes of a shell.
export interface Heard {
  begun: () => void
  output: (bytes: Uint8Array) => void
  end: (e: End) => void // once; nothing comes after it
  refused: (e: unknown) => void // it never began
}

// Shell is a further command in a running job, with a terminal; or the terminal of
// the job's own program, which goes on when it is left.
export class Shell {
  private socket: WebSocket
  private waiting: Uint8Array[] = [] // input that the command has no room for yet
  private room = ahead
  private begun = false
  private over = false

  constructor(private path: string, private own: boolean, columns: number, lines: number, private heard: Heard) {
    this.socket = new WebSocket(`wss://${location.host}${path}`)
    this.socket.binaryType = 'arraybuffer'
    this.socket.onopen = () => {
      this.begun = true
      const size = { width: columns, height: lines }
      const asked = own ? size : { ...size, terminal: true, env: ['TERM=xterm-256color'] }
      this.send(start, new TextEncoder().encode(JSON.stringify(asked)))
      this.flush()
      heard.begun()
    }
    this.socket.onmessage = (m) => this.take(new Uint8Array(m.data as ArrayBuffer))
    this.socket.onclose = () => void this.lost()
  }

  type(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += piece) this.waiting.push(bytes.subarray(at, at + piece))
    this.flush()
  }

  size(columns: number, lines: number): void {
    this.send(resize, new Uint8Array([columns >> 8, columns, lines >> 8, lines]))
  }

  // leave ends the command, if it has not ended and is not the job's own.
  leave(): void {
    this.over = true
    this.socket.close()
  }

  // flush sends what was typed, also before the stream was open.
  private flush(): void {
    while (this.socket.readyState === WebSocket.OPEN && this.waiting.length > 0 && this.waiting[0]!.length <= this.room) {
      const p = this.waiting.shift()!
      this.room -= p.length
      this.send(input, p)
    }
  }

  private send(type: number, data: Uint8Array): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(message(type, data))
  }

  private take(m: Uint8Array): void {
    const data = m.subarray(1)
    if (this.over) return
    if (m[0] === output) this.heard.output(data)
    if (m[0] === window) {
      this.room = Math.min(ahead, this.room + number(data))
      this.flush()
    }
    if (m[0] === exit || m[0] === failed) {
      this.leave() // it is the client that closes
      this.heard.end(m[0] === exit ? { code: number(data) } : { why: reason(data) })
    }
  }

  // lost says what is known when the connection has ended before the command. A
  // browser does not tell a script why it was refused: the same question, asked
  // without a WebSocket, is answered in words.
  private async lost(): Promise<void> {
    if (this.over) return
    this.over = true
    if (this.begun) {
      const goesOn = this.own ? 'The connection broke off. The program goes on, unless the job has ended: attach again.' : ''
      return this.heard.end({ why: goesOn || 'The connection broke off, and with it the shell: it cannot be taken up again.' })
    }
    try {
      await ask(this.path, {})
    } catch (e) {
      if (!(e instanceof Failure && e.status === 400)) return this.heard.refused(e)
    }
    this.heard.refused(new Away('The job can be entered, but the connection for it broke off. A proxy before the controller must let WebSockets through.'))
  }
}

export function message(type: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const m = new Uint8Array(1 + data.length)
  m[0] = type
  m.set(data, 1)
  return m
}

const number = (data: Uint8Array): number => new DataView(data.buffer, data.byteOffset).getUint32(0)

function reason(data: Uint8Array): string {
  try {
    return String(JSON.parse(new TextDecoder().decode(data)).message)
  } catch {
    return 'The stream ended for an unknown reason.'
  }
}
