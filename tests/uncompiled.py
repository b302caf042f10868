"""The decorators of `appca.models.numeric_kernels` that leave a kernel plain Python."""


def kernel(function):
    return function


wide_kernel = bare_kernel = reassociated = kernel
