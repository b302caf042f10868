"""The process that compiles."""

from appca.storage.children import start_compiler


def test_modules_compile_in_a_process_of_their_own():
    assert start_compiler(["appca.canvas.scene.room"]).wait(60) == 0
    assert start_compiler(["appca.no_such_module"]).wait(60) != 0
