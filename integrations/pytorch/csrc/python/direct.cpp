// SPDX-License-Identifier: Apache-2.0
// The module _direct: linear without torch's dispatcher, which takes longer than a small product. It uses the
// limited API of Python 3.10 and, of torch, what the stable ABI has from 2.14 on. Everything that is not a
// plain call has the result NotImplemented, also what fails: the operator says why.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include "../operators.hpp"

// Absent in libtorch before 2.14, and then null.
extern "C" __attribute__((weak)) AOTITorchError torch_tensor_from_pyobject(
        void *object, AtenTensorHandle *tensor);
extern "C" __attribute__((weak)) AOTITorchError torch_tensor_to_pyobject(
        AtenTensorHandle tensor, void *type, void **object);

namespace {

// What prepare() was given.
PyObject *tensor_type = nullptr, *parameter_type = nullptr, *states = nullptr;

struct delete_tensor_t {
    void operator()(AtenTensorHandle tensor) const { aoti_torch_delete_tensor_object(tensor); }
};
using handle_t = std::unique_ptr<AtenTensorOpaque, delete_tensor_t>;

// Null where `object` is no plain tensor, or where its gradient would be asked for.
handle_t plain_tensor(PyObject *object) {
    PyObject *const type = reinterpret_cast<PyObject *>(Py_TYPE(object));
    if (type != tensor_type && type != parameter_type) return nullptr;
    if (aoti_torch_grad_mode_is_enabled()) {
        PyObject *const wants = PyObject_GetAttrString(object, "requires_grad");
        const bool is_false = wants == Py_False;
        Py_XDECREF(wants);
        if (!is_false) return nullptr;
    }
    AtenTensorHandle tensor = nullptr;
    return handle_t(torch_tensor_from_pyobject(object, &tensor) == AOTI_TORCH_SUCCESS ? tensor : nullptr);
}

// Whether every function of `states` says no.
bool nobody_watches() {
    const Py_ssize_t n = PyTuple_Size(states);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *const state = PyObject_CallNoArgs(PyTuple_GetItem(states, i));
        const int is_true = state ? PyObject_IsTrue(state) : -1;
        Py_XDECREF(state);
        if (is_true != 0) return false;
    }
    return true;
}

bool text_of(PyObject *object, std::string &text) {
    Py_ssize_t size = 0;
    const char *const data = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
    if (data) text.assign(data, static_cast<size_t>(size));
    return data != nullptr;
}

PyObject *not_here() {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
}

PyObject *linear(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n != 5 || states == nullptr || !nobody_watches()) return not_here();
    const handle_t x = plain_tensor(args[0]), packed = x ? plain_tensor(args[1]) : nullptr;
    const handle_t bias = packed && args[3] != Py_None ? plain_tensor(args[3]) : nullptr;
    std::string blob, activation;
    if (!packed || (!bias && args[3] != Py_None) || !text_of(args[2], blob) || !text_of(args[4], activation))
        return not_here();
    PyThreadState *const thread = PyEval_SaveThread();
    void *y = nullptr;
    std::optional<torch::stable::Tensor> result;
    try {
        result = mxdnn_torch::linear_of_handles(x.get(), packed.get(), blob, bias.get(), activation);
    } catch (const std::exception &) { // the operator fails alike, and says why
    }
    PyEval_RestoreThread(thread);
    if (!result || torch_tensor_to_pyobject(result->get(), nullptr, &y) != AOTI_TORCH_SUCCESS)
        return not_here();
    return static_cast<PyObject *>(y);
}

PyObject *prepare(PyObject *, PyObject *args) {
    PyObject *tensor = nullptr, *parameter = nullptr, *functions = nullptr;
    if (!PyArg_ParseTuple(args, "OOO!", &tensor, &parameter, &PyTuple_Type, &functions)) return nullptr;
    if (torch_tensor_from_pyobject == nullptr || torch_tensor_to_pyobject == nullptr) Py_RETURN_FALSE;
    for (PyObject *object : {tensor, parameter, functions}) Py_INCREF(object);
    tensor_type = tensor, parameter_type = parameter, states = functions;
    Py_RETURN_TRUE;
}

PyMethodDef methods[] = {
        {"linear", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&linear)), METH_FASTCALL,
                "linear(x, packed, blob, bias, activation): the product, or NotImplemented"},
        {"prepare", &prepare, METH_VARARGS,
                "prepare(tensor, parameter, states): types of plain tensors, and functions of which one is true where "
                "somebody has to see the call. False where this torch lacks what is needed"},
        {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {
        PyModuleDef_HEAD_INIT, "_direct", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit__direct() { return PyModule_Create(&module); }
