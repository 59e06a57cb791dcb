import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Failure } from './http'

// Dialog asks before something is done. Escape and the first button leave it, Enter in
// a field says yes. What had the focus before has it again.
export function Dialog(props: { title: string; children: ComponentChildren; yes: string; busy?: boolean; danger?: boolean; onYes: () => void; onNo: () => void }) {
  const box = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const it = box.current!
    it.showModal()
    return () => {
      it.close()
      if (document.activeElement === document.body) document.querySelector('main')?.focus()
    }
  }, [])
  return (
    <dialog
      ref={box}
      aria-labelledby="dialog-title"
      onCancel={(e: Event) => {
        e.preventDefault()
        props.onNo()
      }}
    >
      <form
        noValidate // what is wrong the controller says, all of it
        onSubmit={(e: Event) => {
          e.preventDefault()
          props.onYes()
        }}
      >
        <h2 id="dialog-title">{props.title}</h2>
        {props.children}
        <div class="buttons">
          <button type="button" onClick={props.onNo}>
            Leave it
          </button>
          <button type="submit" class={props.danger ? 'danger' : 'main'} disabled={props.busy}>
            {props.yes}
          </button>
        </div>
      </form>
    </dialog>
  )
}

// Trouble is what went wrong, in the controller's words, with what to do next. One that
// is quiet is not called out to who hears the page.
export function Trouble(props: { of: unknown; quiet?: boolean }) {
  if (!props.of) return null
  const e = props.of as Partial<Failure>
  return (
    <div class="trouble" role={props.quiet ? 'status' : 'alert'}>
      <p>{e.message ?? String(props.of)}</p>
      {e.problems && e.problems.length > 0 && (
        <ul>
          {e.problems.map((p) => (
            <li key={p.path + p.message}>
              <code>{p.path}</code>: {p.message}
              {p.hint && <> ({p.hint})</>}
            </li>
          ))}
        </ul>
      )}
      {e.hint && <p class="hint">{e.hint}</p>}
    </div>
  )
}
