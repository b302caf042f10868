"""The process that compiles."""

from importlib import import_module

from appca.jobs.process import COMPILED, start_compiler


def test_modules_compile_in_a_process_of_their_own():
    assert all(callable(import_module(name).compile_ahead) for name in COMPILED)
    assert start_compiler(COMPILED[:1], 0).wait(60) == 0
    assert start_compiler(["appca.no_such_module"], 0).wait(60) != 0
