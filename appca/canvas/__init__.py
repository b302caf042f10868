"""The picture of a fitted model: its scene, the JavaScript that draws it, and its hosts.

`docs/scene.md` documents the format of a scene and the interface of the canvas.
"""
