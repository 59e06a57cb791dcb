import { useEffect, useState } from 'preact/hooks'
import type { Field } from 'gbatch:fields'

// useFields are the fields of the job document as its reference describes them,
// which only the form needs.
export function useFields(): Map<string, Field> {
  const [fields, set] = useState(() => new Map<string, Field>())
  useEffect(() => void import('gbatch:fields').then((m) => set(new Map(m.default.map((f) => [f.path, f])))), [])
  return fields
}

// Text is a text of the reference, which has programs' words between backquotes.
export function Text(props: { of: string }) {
  return <>{props.of.split('`').map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>
}

// At says what the field is for that is being typed: the innermost one that is known.
export function At(props: { path: string; fields: Map<string, Field> }) {
  const names = props.path.split('.')
  while (names.length > 0 && !props.fields.has(names.join('.'))) names.pop()
  const f = props.fields.get(names.join('.'))
  return (
    <p class="hint" role="status">
      {f ? <Described field={f} /> : 'What a field is for is said here when you are in it.'}
    </p>
  )
}

function Described(props: { field: Field }) {
  const f = props.field
  return (
    <>
      <b>{f.path}</b>: <Text of={f.meaning} /> (<Text of={f.type} />
      {f.default && (
        <>
          ; {f.default === 'required' ? '' : 'else '}
          <Text of={f.default} />
        </>
      )}
      )
    </>
  )
}

// All lists the fields that have the words which are looked for.
export function All(props: { fields: Map<string, Field> }) {
  const [words, find] = useState('')
  const sought = words.toLowerCase().split(/\s+/).filter(Boolean)
  const found = [...props.fields.values()].filter((f) => sought.every((w) => (f.path + ' ' + f.meaning).toLowerCase().includes(w)))
  return (
    <details class="all">
      <summary>All fields of the document</summary>
      <label>
        <span>Find</span>
        <input type="search" value={words} onInput={(e) => find(e.currentTarget.value)} />
      </label>
      <ul>
        {found.map((f) => (
          <li key={f.path}>
            <Described field={f} />
          </li>
        ))}
      </ul>
    </details>
  )
}
