# IPython runs this when a kernel starts. It makes `%%distrain` known without `%load_ext`, and
# whatever goes wrong in it must not keep the kernel from starting.
try:
    __import__("distrain_nb").load_ipython_extension(get_ipython())  # noqa: F821
except Exception as error:
    print(f"distrain_nb could not be loaded: {error}")
