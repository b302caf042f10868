/** Compiled programs with their uniforms by name, and buffers and textures in one line each. */

/** @typedef {WebGL2RenderingContext} GL */
/** @typedef {{program: WebGLProgram, at: Record<string, WebGLUniformLocation | null>}} Program */

/** @param {GL} gl @param {string} vertex @param {string} fragment @returns {Program} */
export function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of /** @type {[number, string][]} */ ([
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ])) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
    gl.shaderSource(
      shader,
      `#version 300 es\nprecision highp float; precision highp int;\n${source}`,
    );
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    const logs = (gl.getAttachedShaders(made) ?? []).map((shader) => gl.getShaderInfoLog(shader));
    throw new Error(`${gl.getProgramInfoLog(made)} ${logs.join(' ')}`);
  }
  /** @type {Program['at']} */
  const at = {};
  for (let i = 0; i < (gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) ?? 0); i += 1) {
    const name = gl.getActiveUniform(made, i)?.name ?? '';
    at[name] = gl.getUniformLocation(made, name);
  }
  return { program: made, at };
}

/** @param {GL} gl @param {number} kind @param {number} [filter] */
export function texture(gl, kind, filter = gl.NEAREST) {
  const made = gl.createTexture();
  gl.bindTexture(kind, made);
  gl.texParameteri(kind, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(kind, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(kind, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(kind, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return made;
}

/** @typedef {Record<number, [Int16Array | Float32Array | Uint16Array | Uint32Array, number]>} Attributes by location, numbers and how many of them a vertex has */

/** A vertex array; unsigned numbers stay whole in the shader. @param {GL} gl @param {Attributes} attributes @param {number} [divisor] */
export function vertices(gl, attributes, divisor = 0) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  const buffers = Object.entries(attributes).map(([location, [data, size]]) => {
    const at = Number(location);
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(at);
    if (data instanceof Uint32Array) gl.vertexAttribIPointer(at, size, gl.UNSIGNED_INT, 0, 0);
    else if (data instanceof Uint16Array)
      gl.vertexAttribIPointer(at, size, gl.UNSIGNED_SHORT, 0, 0);
    else if (data instanceof Int16Array) gl.vertexAttribPointer(at, size, gl.SHORT, false, 0, 0);
    else gl.vertexAttribPointer(at, size, gl.FLOAT, false, 0, 0);
    gl.vertexAttribDivisor(at, divisor);
    return buffer;
  });
  gl.bindVertexArray(null);
  return {
    array,
    free: () => {
      buffers.forEach((buffer) => gl.deleteBuffer(buffer));
      gl.deleteVertexArray(array);
    },
  };
}
/** @typedef {ReturnType<typeof vertices>} Vertices */
