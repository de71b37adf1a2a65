"""Compiles a file of Slang to SPIR-V with the library that PyPI's slangpy brings.

Usage: slang.py LIBRARY SOURCE TARGET
"""

import ctypes
import sys

library, source, target = sys.argv[1:]
slang = ctypes.CDLL(library)
for name in ("spCreateSession", "spCreateCompileRequest", "spGetDiagnosticOutput"):
    getattr(slang, name).restype = ctypes.c_void_p
session = ctypes.c_void_p(slang.spCreateSession(None))
request = ctypes.c_void_p(slang.spCreateCompileRequest(session))
# Numbers of the header: SLANG_SPIRV, SLANG_SOURCE_LANGUAGE_SLANG, SLANG_STAGE_COMPUTE, SLANG_DEBUG_INFO_LEVEL_MINIMAL.
slang.spAddCodeGenTarget(request, 6)
slang.spSetTargetProfile(request, 0, slang.spFindProfile(session, b"spirv_1_5"))
slang.spSetDebugInfoLevel(request, 1)
unit = slang.spAddTranslationUnit(request, 1, None)
slang.spAddTranslationUnitSourceFile(request, unit, source.encode())
slang.spAddEntryPoint(request, unit, b"main", 6)
is_well = slang.spCompile(request) >= 0
told = slang.spGetDiagnosticOutput(request)
if told and ctypes.string_at(told):
    print(ctypes.string_at(told).decode(), file=sys.stderr)
if not is_well:
    sys.exit(f"{source} does not compile")
blob = ctypes.c_void_p()
if slang.spGetEntryPointCodeBlob(request, 0, 0, ctypes.byref(blob)) < 0:
    sys.exit(f"{source} gives no code")
# A blob is an object of COM: behind the three methods that all have come its bytes and their number.
methods = ctypes.cast(ctypes.cast(blob, ctypes.POINTER(ctypes.c_void_p))[0], ctypes.POINTER(ctypes.c_void_p))
bytes_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(methods[3])
size_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(methods[4])
with open(target, "wb") as file:
    file.write(ctypes.string_at(bytes_of(blob), size_of(blob)))
