/** Reads what a source file imports, from its syntax tree. */
import ts from 'typescript'

/**
 * @typedef {object} Import
 * @property {string} specifier
 * @property {number} line from 1
 * @property {boolean} typesOnly nothing is left of it at run time
 */

/**
 * @param {string} path
 * @param {string} text
 */
export function parse(path, text) {
  return ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true)
}

/**
 * @param {ts.SourceFile} file
 * @returns {Import[]}
 */
export function readImports(file) {
  /** @type {Import[]} */
  const imports = []
  /** @param {ts.Node} node */
  const visit = (node) => {
    const found = importOf(node)
    if (found !== undefined) imports.push({ ...found, line: lineOf(file, node) })
    ts.forEachChild(node, visit)
  }
  visit(file)
  return imports
}

/**
 * @param {ts.SourceFile} file
 * @param {ts.Node} node
 */
export function lineOf(file, node) {
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
}

/**
 * @param {ts.Node} node
 * @returns {{ specifier: string, typesOnly: boolean } | undefined}
 */
function importOf(node) {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const typesOnly = node.importClause?.isTypeOnly === true || onlyTypes(node.importClause?.namedBindings)
    return { specifier: node.moduleSpecifier.text, typesOnly }
  }
  if (
    ts.isExportDeclaration(node) &&
    node.moduleSpecifier !== undefined &&
    ts.isStringLiteral(node.moduleSpecifier)
  ) {
    return {
      specifier: node.moduleSpecifier.text,
      typesOnly: node.isTypeOnly || onlyTypes(node.exportClause),
    }
  }
  if (
    ts.isImportTypeNode(node) &&
    ts.isLiteralTypeNode(node.argument) &&
    ts.isStringLiteral(node.argument.literal)
  ) {
    return { specifier: node.argument.literal.text, typesOnly: true }
  }
  if (ts.isCallExpression(node) && isImportCall(node.expression)) {
    const [argument] = node.arguments
    if (argument !== undefined && ts.isStringLiteralLike(argument)) {
      return { specifier: argument.text, typesOnly: false }
    }
  }
  return undefined
}

/**
 * `require` does not exist in ES modules: a function of that name is somebody's own.
 * @param {ts.Expression} callee
 */
function isImportCall(callee) {
  return callee.kind === ts.SyntaxKind.ImportKeyword
}

/** @param {ts.NamedImportBindings | ts.NamedExportBindings | undefined} bindings */
function onlyTypes(bindings) {
  if (bindings === undefined || ts.isNamespaceImport(bindings) || ts.isNamespaceExport(bindings)) return false
  return bindings.elements.length > 0 && bindings.elements.every((element) => element.isTypeOnly)
}
