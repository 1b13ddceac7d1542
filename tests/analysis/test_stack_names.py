"""Call stacks in the words of their users. Symbols are those of real captures of PyTorch 2.11."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from traceview.analysis.stack_names import short_symbol, written_stack
from traceview.model import NativeFrame, PythonFrame, Stack
from traceview.report import Sync

TORCH = "/opt/torch/lib/libtorch_cuda.so"
BINDINGS = "/opt/torch/lib/libtorch_python.so"
PYTHON = "/usr/bin/python3.12"
BELOW = (
    NativeFrame("0x7f7a7b31556e", "/opt/nvidia/nsight-compute/2025.3.1/host/target-linux-x64/libcupti.so.13.0"),
    NativeFrame("0x7f7b5487f046", "/usr/local/nvidia/lib64/libcuda.so.580.159.04"),
    NativeFrame("cudaStreamSynchronize", "/opt/torch/nvidia/cu13/lib/libcudart.so.13"),
)
ABOVE = (
    NativeFrame("0x581d5a", PYTHON),
    NativeFrame("PyObject_Vectorcall", PYTHON),
    NativeFrame("_PyEval_EvalFrameDefault", PYTHON),
    NativeFrame("0x7f7b9622a1ca", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
    NativeFrame("__libc_start_main", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
    NativeFrame("_start", PYTHON),
)
SCALAR = "at::native::_local_scalar_dense_cuda(at::Tensor const&)"
LAMBDA = "at::native::_local_scalar_dense_cuda(at::Tensor const&)::{lambda()#1}::operator()() const"
WRAPPER = (
    "c10::impl::wrap_kernel_functor_unboxed_<c10::impl::detail::WrapFunctionIntoFunctor_<c10::CompileTimeFunctionPointer"
    "<c10::Scalar (at::Tensor const&), &at::(anonymous namespace)::wrapper_CUDA___local_scalar_dense>, c10::Scalar, "
    "c10::guts::typelist::typelist<at::Tensor const&> >, c10::Scalar (at::Tensor const&)>::call(c10::OperatorKernel*)"
)
NONZERO = "at::native::nonzero_cuda(at::Tensor const&)"
COPY = "at::native::copy_kernel_cuda(at::TensorIterator&, bool)"
OPERATOR = "at::_ops::_local_scalar_dense::call(at::Tensor const&)"
ITEM = "at::native::item(at::Tensor const&)"


def stack(*symbols: str, python: tuple[PythonFrame, ...] = ()) -> Stack:
    """Return a stack with the given symbols between the runtime and the interpreter."""
    own = (NativeFrame(symbol, BINDINGS if "THP" in symbol else TORCH) for symbol in symbols)
    return Stack((*BELOW, *own, *ABOVE), python)


def bound(function: str) -> str:
    return f"torch::autograd::{function}(_object*, _object*, _object*)"


def test_item_is_named_and_what_says_nothing_is_left_out() -> None:
    found = written_stack(stack(LAMBDA, SCALAR, WRAPPER, OPERATOR, ITEM, bound("THPVariable_item")))
    assert found == (".item()", "at::native::_local_scalar_dense_cuda", "at::native::item")


@pytest.mark.parametrize(
    ("symbols", "named"),
    [
        ((SCALAR, ITEM, bound("THPVariable_item")), ".item()"),
        ((SCALAR, ITEM, bound("THPVariable_bool_scalar")), "bool()"),
        ((SCALAR, ITEM, "at::native::is_nonzero(at::Tensor const&)", bound("THPVariable_is_nonzero")), "bool()"),
        ((SCALAR, bound("THPVariable_float_scalar")), "float()"),
        ((SCALAR, bound("THPVariable_index_scalar")), "int()"),
        ((COPY, bound("THPVariable_tolist")), ".tolist()"),
        ((COPY, bound("THPVariable_cpu")), ".cpu()"),
        ((COPY, bound("THPVariable_to")), ".to()"),
        ((NONZERO, bound("THPVariable_nonzero")), "nonzero()"),
        ((NONZERO, bound("THPVariable_getitem")), "nonzero() in tensor[...]"),
        ((NONZERO, bound("THPVariable_masked_select")), "nonzero() in masked_select()"),
        ((SCALAR, ITEM, bound("THPVariable_repeat_interleave")), ".item() in repeat_interleave()"),
        ((SCALAR, ITEM, bound("THPVariable__unique2")), ".item() in unique()"),
        (("at::native::empty_cuda(c10::ArrayRef<long>)", bound("THPVariable_mm")), "mm()"),
        (("THCPModule_cudaSynchronize(_object*, _object*)",), "torch.cuda.synchronize()"),
        (("THCPStream_synchronize(_object*, _object*)",), "Stream.synchronize()"),
        (("THCPEvent_synchronize(_object*, _object*)",), "Event.synchronize()"),
        # the autograd engine's own thread: no Python below
        ((SCALAR, ITEM, "torch::autograd::Engine::evaluate_function()"), ".item()"),
    ],
)  # fmt: skip
def test_operators_are_named_in_the_words_of_a_program(symbols: tuple[str, ...], named: str) -> None:
    assert written_stack(stack(*symbols))[0] == named


def test_lines_of_python_follow_the_compiled_frames() -> None:
    python = (
        PythonFrame("_sample", "/opt/venv/lib/python3.12/site-packages/transformers/generation/utils.py", 3030),
        PythonFrame("_call_impl", "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1790),
        PythonFrame("_call_impl", "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1790),
        PythonFrame("<module>", "/app/run.py", 13),
    )
    found = written_stack(stack(SCALAR, bound("THPVariable_item"), python=python))
    assert found[0] == ".item()"
    assert found[-3:] == (
        "_sample (transformers/generation/utils.py:3030)",
        "_call_impl (torch/nn/modules/module.py:1790)",
        "<module> (/app/run.py:13)",
    )


def test_the_calling_line_is_the_innermost_that_is_not_pytorchs() -> None:
    where = (
        ".item()",
        "at::native::item",
        "wait (torch/cuda/streams.py:63)",
        "update (transformers/cache_utils.py:1394)",
        "<module> (/app/run.py:13)",
    )
    sync = Sync("cudaStreamSynchronize", "explicit", None, 1, None, False, 9, None, None, where)
    assert sync.calling_line == "update (transformers/cache_utils.py:1394)"
    assert replace(sync, where=where[:2]).calling_line is None
    assert replace(sync, where=None).calling_line is None


def test_a_program_without_pytorch_shows_its_own_functions() -> None:
    native = (
        NativeFrame("0x7fd990700588", "/opt/Nsight-Systems/2022.2.1/target-linux-x64/libcupti.so.11.7"),
        NativeFrame("cudaMalloc", "/usr/lib/libcudart.so.11.7.60"),
        NativeFrame("cudaError cudaMalloc<double>(double**, unsigned long)", "/home/saxpy"),
        NativeFrame("saxpy(int, double*, double*)", "/home/saxpy"),
        NativeFrame("main", "/home/saxpy"),
        NativeFrame("__libc_start_main", "/lib64/libc-2.31.so"),
        NativeFrame("_start", "/home/saxpy"),
    )
    assert written_stack(Stack(native, ())) == ("saxpy", "main")


def test_a_stack_of_nothing_but_the_driver_says_nothing() -> None:
    assert written_stack(Stack(BELOW, ())) == ()


@pytest.mark.parametrize(
    ("symbol", "short"),
    [
        (SCALAR, "at::native::_local_scalar_dense_cuda"),
        ("c10::cuda::CUDAStream::synchronize() const", "c10::cuda::CUDAStream::synchronize"),
        (
            "at::cuda::(anonymous namespace)::CUDACachingHostAllocatorImpl::allocate_host_memory_slowpath("
            "unsigned long, void**)",
            "at::cuda::CUDACachingHostAllocatorImpl::allocate_host_memory_slowpath",
        ),
        (
            "at::CachingHostAllocatorImpl<c10::cuda::CUDAStream, std::unique_ptr<c10::cuda::CUDAEvent, "
            "std::function<void (c10::cuda::CUDAEvent*)> >, at::HostBlock<c10::cuda::CUDAStream> "
            ">::allocate(unsigned long)",
            "at::CachingHostAllocatorImpl::allocate",
        ),
        ("cudaError cudaMalloc<double>(double**, unsigned long)", "cudaMalloc"),
        ("main", "main"),
        ("0x7f7a7b31556e", "0x7f7a7b31556e"),
        ("", ""),
        ("(((", "((("),
        ("a::operator<<(b&)", "a::operator"),
    ],
)
def test_symbols_lose_what_a_person_need_not_read(symbol: str, short: str) -> None:
    assert short_symbol(symbol) == short


@pytest.mark.parametrize("symbol", ["THP" + "_" * 20_000 + "-", "a::" * 20_000 + "THP_", "THP" + "x" * 20_000])
def test_a_long_name_is_answered_at_once(symbol: str) -> None:
    began = time.process_time()
    written_stack(stack(symbol))
    assert time.process_time() - began < 1
