import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { useEffect, useRef } from 'preact/hooks'
import { Backlog } from './backlog'
import { type End, Shell } from './exec'

// Sheet is what the terminal writes its style sheets into: elements with styles in
// them are refused by the page's policy, sheets that a script makes are not.
class Sheet extends HTMLElement {
  private sheet = new CSSStyleSheet()

  override set textContent(text: string) {
    this.sheet.replaceSync(text)
  }

  connectedCallback(): void {
    document.adoptedStyleSheets.push(this.sheet)
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== this.sheet)
  }
}

customElements.define('gbatch-sheet', Sheet)

// The colours of the style sheet's .log and .fg0 to .fg15.
const theme = {
  background: '#10131a', foreground: '#e6e9ed', cursor: '#e6e9ed', selectionBackground: '#34405c',
  black: '#8b95a3', red: '#ff8f86', green: '#7ad494', yellow: '#e0c65a', blue: '#7db4ff', magenta: '#d7a0ff', cyan: '#5fd0d8', white: '#e6e9ed',
  brightBlack: '#a3adb8', brightRed: '#ffb3ad', brightGreen: '#a5e8b8', brightYellow: '#f2df8f', brightBlue: '#a9ceff', brightMagenta: '#e6c4ff', brightCyan: '#96e4ea', brightWhite: '#fff',
}

// Screen is a terminal in a job, which has the keys until Ctrl+F6: a new shell's, or
// the job's own. What is printed
// there can do nothing outside of it: titles go nowhere, and links are text.
export default function Screen(props: { path: string; own: boolean; begun: () => void; end: (e: End) => void; refused: (e: unknown) => void; leave: () => void }) {
  const box = useRef<HTMLDivElement>(null)
  const told = useRef(props)
  told.current = props
  useEffect(() => {
    const terminal = new Terminal({ theme, fontSize: 13, fontFamily: 'ui-monospace, monospace', scrollback: 5000, minimumContrastRatio: 4.5, screenReaderMode: true })
    const fit = new FitAddon()
    terminal.loadAddon(fit)
    terminal.parser.registerOscHandler(8, () => true)
    terminal.open(box.current!)
    fit.fit()
    const shown = new Backlog((piece, done) => terminal.write(piece, done))
    const shell = new Shell(props.path, props.own, terminal.cols, terminal.rows, {
      begun: () => (terminal.focus(), told.current.begun()),
      output: (bytes) => shown.add(bytes),
      end: (e) => {
        terminal.options.disableStdin = true
        told.current.end(e)
      },
      refused: (e) => told.current.refused(e),
    })
    const text = new TextEncoder()
    terminal.onData((keys) => shell.type(text.encode(keys)))
    terminal.onBinary((keys) => shell.type(Uint8Array.from(keys, (c) => c.charCodeAt(0))))
    terminal.onResize(({ cols, rows }) => shell.size(cols, rows))
    terminal.attachCustomKeyEventHandler((e) => {
      const leaves = e.ctrlKey && e.key === 'F6'
      if (leaves && e.type === 'keydown') told.current.leave()
      return !leaves
    })
    const sizes = new ResizeObserver(() => fit.fit())
    sizes.observe(box.current!)
    return () => {
      sizes.disconnect()
      shell.leave()
      terminal.dispose()
    }
  }, [props.path])
  return <div class="screen" ref={box} />
}
